APPS += quota
