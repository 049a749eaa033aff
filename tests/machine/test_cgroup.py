"""What a container allows, read from made-up /proc and /sys trees."""

from pathlib import Path

from pyrometer.machine.cgroup import cpu_quota_cores, memory_limit_bytes


def write_files(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return root


def test_a_version_2_quota_is_its_share_of_the_period(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": "150000 100000"}
    assert cpu_quota_cores(write_files(tmp_path, files)) == 1.5


def test_the_smallest_limit_of_all_enclosing_groups_binds(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/jobs/train",
        "sys/fs/cgroup/jobs/train/cpu.max": "800000 100000",
        "sys/fs/cgroup/jobs/cpu.max": "200000 100000",
        "sys/fs/cgroup/jobs/train/memory.max": "max",
        "sys/fs/cgroup/jobs/memory.max": "1048576",
    }
    root = write_files(tmp_path, files)
    assert cpu_quota_cores(root) == 2.0
    assert memory_limit_bytes(root) == 1_048_576


def test_version_1_limits_are_read_from_their_own_controllers(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "4:memory:/job\n1:cpu,cpuacct:/job",
        "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "50000",
        "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "2048",
    }
    root = write_files(tmp_path, files)
    assert cpu_quota_cores(root) == 0.5
    assert memory_limit_bytes(root) == 2_048


def test_a_container_that_sees_the_hosts_path_is_limited_by_its_own_root(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "1:cpu:/docker/0123abcd",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
    }
    assert cpu_quota_cores(write_files(tmp_path, files)) == 3.0


def test_groups_without_a_limit_give_none(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "1:cpu:/\n0::/",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
        "sys/fs/cgroup/cpu.max": "max 100000",
        "sys/fs/cgroup/memory.max": "max",
    }
    root = write_files(tmp_path, files)
    assert cpu_quota_cores(root) is None
    assert memory_limit_bytes(root) is None


def test_limits_that_make_no_sense_are_no_limits(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "nonsense\n0::/",
        "sys/fs/cgroup/cpu.max": "100000 0",
        "sys/fs/cgroup/memory.max": "\N{SUPERSCRIPT TWO}",
    }
    root = write_files(tmp_path, files)
    assert cpu_quota_cores(root) is None
    assert memory_limit_bytes(root) is None


def test_a_machine_without_control_groups_has_no_limits(tmp_path: Path) -> None:
    assert cpu_quota_cores(tmp_path) is None
    assert memory_limit_bytes(tmp_path) is None
