"""HTML forms for arguments: from specs to fields, and from submitted fields to arguments, without JavaScript."""
