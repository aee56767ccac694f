APPS += spread
