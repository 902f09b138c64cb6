"""The keys of the page of the whole cluster (``nnha web``)."""

from ha.conf.keys.key import Key, Scope
from ha.conf.keys.units import flag, host_port, optional_text, regular_expression, words

_G = Scope.GLOBAL

WEB_HTTP = Key(
    "nnha.web.http-address",
    host_port(),
    "127.0.0.1:8122",
    _G,
    "where nnha web shows the cluster as a page",
)
WEB_HOSTS = Key(
    "nnha.web.hosts",
    words,
    "",
    _G,
    "further names under which browsers may ask nnha web, for instance that of a proxy; addresses, "
    "localhost, this machine's name and the host of nnha.web.http-address always may",
)
WEB_URL = Key(
    "nnha.web.url",
    optional_text,
    "",
    _G,
    "where people find nnha web; every daemon's first page leads there",
)
WEBHDFS = Key(
    "dfs.webhdfs.enabled", flag, "true", _G, "whether NameNodes and DataNodes serve WebHDFS"
)
WEBHDFS_USERS = Key(
    "dfs.webhdfs.user.provider.user.pattern",
    regular_expression,
    "^[A-Za-z_][A-Za-z0-9._-]*[$]?$",
    _G,
    "a regular expression that the whole of user.name has to match",
)
