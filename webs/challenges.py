"""Challenges as services at the edge of sites show them, and pages that only look like them; made for this project."""

from __future__ import annotations

from webs.web import HTML, WebResponse

_WAIT = "<!doctype html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"
_PROSE = "<p>" + "This paragraph is the text of an article, which somebody may well want to read. " * 60 + "</p>"


def _script(code: str) -> str:
    return f"<script>{code}</script>"


def _from(source: str) -> str:
    return f"<script src={source}></script>"


def _page(title: str, head: str = "", body: str = "", status: int = 200, **headers: str) -> WebResponse:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return WebResponse(status, HTML | fields, _WAIT.format(title=title, head=head, body=body).encode())


CHALLENGES: dict[str, WebResponse] = {
    "cloudflare": _page("Just a moment...", _script("go()"), status=403, cf_mitigated="challenge"),
    "cloudflare-turnstile": _page("One moment", _script("window._cf_chl_opt={cType:'managed'};"), status=503),
    "akamai": _page("", '<div id="sec-if-cpt-container">' + _from("/_sec/cp_challenge/a.js"), status=428),
    "akamai-refresh": _page("", '<meta http-equiv="refresh" content="5; URL=\'/?bm-verify=AAQ\'">'),
    "datadome": _page("", _script("var dd={'rt':'c'}"), status=403, x_dd_b="1"),
    "datadome-captcha": _page("", _script("var dd={'rt':'c'}") + _from("https://ct.captcha-delivery.com/c.js")),
    "imperva": _page("", '<iframe id="main-iframe" src="/_Incapsula_Resource?X=3">Incapsula incident ID: 7-8</iframe>'),
    "anubis": _page("Checking", '<script id="anubis_challenge" type="application/json">{"difficulty":4}</script>'),
    "anubis-script": _page("Checking", _from("/.within.website/x/cmd/anubis/static/js/main.mjs"), "One moment."),
    "aws-waf": _page("", _from("https://1.token.awswaf.com/challenge.js"), status=202, x_amzn_waf_action="challenge"),
    "aws-waf-captcha": _page("", _script("window.awsWafCookieDomainList=[];") + _from("/captcha.js"), status=405),
    "human": _page("", _script("window._pxAppId='PX1';"), '<div id="px-captcha"></div>', status=403),
    "kasada": _page("", _script("window.KPSDK={};") + _from("/149e/ips.js?x"), status=429),
    "f5": _page("", _from("/TSPD/08?type=17"), "<noscript>Scripts are needed. Your support ID is 12.</noscript>"),
    "sucuri": _page("Redirecting", _script("S='c3VjdXJp';sucuri_cloudproxy_js='';")),
    "ddos-guard": _page("DDoS-Guard", body="<h1>Checking</h1>", status=403),
    "fastly": _page("Client Challenge", _from("/_fs-ch-1T1/script.js")),
    "vercel": _page("Vercel Security Checkpoint", status=429, x_vercel_mitigated="challenge"),
    "safeline": _page("Checking", _from("/.safeline/static/a.js"), status=468),
    "go-away": _page("Checking", "<link href=/.well-known/.git.gammaspectra.live/git/go-away/cmd/go-away/a.css>"),
    "reblaze": _page("", _script("window.rbzns={bereshit:'1'};")),
}
"""Name, the maker's alone or with a suffix where one has several -> a challenge of status 200 or another."""
OTHERS: dict[str, WebResponse] = {
    "plain 403": _page("Forbidden", body="<h1>403</h1>", status=403, server="cloudflare", cf_ray="1-PRG"),
    "article on it": _page("Anubis", body="Put /.within.website/x/cmd/anubis/ and _cf_chl_opt aside." + _PROSE),
    "escaped code": _page("Code", body="<pre>&lt;script id=&quot;anubis_challenge&quot;&gt;</pre>"),
    "raw code": WebResponse(200, {"Content-Type": "text/plain"}, b"Look for window._cf_chl_opt in the page."),
    "robots.txt about it": WebResponse(200, {}, b"User-agent: *\nDisallow: /.within.website/x/cmd/anubis/\n"),
    "just a moment": _page("Just a moment...", body="<p>A short story. One moment, please.</p>"),
    "detections in the background": _page("News", _from("/cdn-cgi/challenge-platform/scripts/jsd/main.js"), "Short."),
    "imperva in the background": _page("News", _from("/_Incapsula_Resource?SWJIYLWA=1"), "Short."),
    "f5 in the background": _page("News", _from("/TSPD/08?type=9"), "Short."),
    "datadome in the background": _page("News", _from("https://js.datadome.co/tags.js"), "x", x_datadome="protected"),
    "a form with a captcha": _page("Write to us", body='<form><div class="g-recaptcha"></div></form>'),
    "blocked, not challenged": _page("News", body="x", status=403, cf_mitigated="block"),
    "hub": _page("Hub", _script("window._cf_chl_opt"), '<a href="/x">x</a>' * 30),
    "empty": WebResponse(200, {}, b""),
    "robots.txt": WebResponse(200, {"Content-Type": "text/plain"}, b"User-agent: *\nDisallow: /captcha\n# challenge"),
}
"""Answers that are no challenges."""
