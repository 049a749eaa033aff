"""What the HTML page is made of beside its data: a skeleton, styles and scripts, put in as they are."""
