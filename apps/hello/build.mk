APPS += hello
