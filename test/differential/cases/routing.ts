/** Hosts, paths, redirects, rewrites and changes of fields by routes. */
import { type Case, ok, requestText, site, withLength } from '../case.ts'

const path = (name: string, value: string, report?: string): Case => ({
  name,
  send: requestText({ path: value }),
  ...(report !== undefined && { report }),
})
const host = (name: string, value: string, report?: string): Case => ({
  name,
  send: requestText({ host: value }),
  ...(report !== undefined && { report }),
})

export const routing: readonly Case[] = [
  path('routing/exact', '/exact'),
  path('routing/exact-with-slash', '/exact/'),
  path('routing/prefix', '/api'),
  path('routing/prefix-and-more', '/api/v1?x=1'),
  path('routing/prefix-within-a-word', '/apiary'),
  { name: 'routing/no-route', send: requestText({ host: 'only.example.com', path: '/other' }) },
  { name: 'routing/only-route', send: requestText({ host: 'only.example.com', path: '/only' }) },
  { name: 'routing/header', send: requestText({ path: '/by-header', fields: ['X-Team: b'] }) },
  { name: 'routing/header-of-another-value', send: requestText({ path: '/by-header' }) },
  { name: 'routing/method', send: withLength('x', { path: '/by-method' }) },
  { name: 'routing/another-method', send: requestText({ path: '/by-method' }) },
]

export const hosts: readonly Case[] = [
  host('hosts/unknown', 'unknown.example.org'),
  host('hosts/wildcard', 'a.wild.example.com'),
  host('hosts/wildcard-of-two-labels', 'a.b.wild.example.com'),
  host('hosts/wildcard-of-no-label', 'wild.example.com'),
  host('hosts/capitals', 'SITE.Example.COM'),
  host('hosts/port', `${site}:8080`, 'envoyproxy/envoy#3515'),
  host('hosts/empty-port', `${site}:`),
  host('hosts/bad-port', `${site}:80a`),
  host('hosts/final-dot', `${site}.`),
  host('hosts/empty', ''),
  host('hosts/user', `user@${site}`),
  host('hosts/space', `${site} x`),
  host('hosts/slash', `${site}/x`),
  host('hosts/address', '127.0.0.1'),
  host('hosts/address-of-version-6', '[::1]:80'),
  { name: 'hosts/absent', send: 'GET /page HTTP/1.1\r\n\r\n' },
  { name: 'hosts/twice', send: requestText({ fields: [`Host: ${site}`] }) },
  { name: 'hosts/twice-and-different', send: requestText({ fields: ['Host: other.example.com'] }) },
  { name: 'hosts/absolute-form', send: requestText({ path: `http://${site}/page?a` }) },
  {
    name: 'hosts/absolute-form-of-another-host',
    report: 'httpwg/http-core#191',
    send: requestText({ path: `http://${site}/page`, host: 'other.example.com' }),
  },
  { name: 'hosts/absolute-form-without-a-path', send: requestText({ path: `http://${site}` }) },
  { name: 'hosts/absolute-form-of-https', send: requestText({ path: `https://${site}/page` }) },
]

export const paths: readonly Case[] = [
  path('paths/two-slashes', '/a//b', 'envoyproxy/envoy#7611'),
  path('paths/two-slashes-first', '//exact'),
  path('paths/dot-segments', '/a/../exact'),
  path('paths/escaped-dot-segments', '/a/%2e%2e/exact'),
  path('paths/dots-above-the-root', '/../../exact'),
  path('paths/escaped-slash', '/api%2fv1', 'nginx/nginx#501'),
  path('paths/escaped-letter', '/%65xact'),
  path('paths/bad-escape', '/a%zz'),
  path('paths/cut-escape', '/a%4'),
  path('paths/escaped-nul', '/a%00b'),
  path('paths/backslash', '/a\\b'),
  path('paths/parameters', '/exact;v=1'),
  path('paths/empty-query', '/page?'),
  path('paths/query-with-a-question-mark', '/page?a=b?c=d'),
  path('paths/fragment', '/page#part'),
  path('paths/marks', '/a"<>`{}|^b'),
  path('paths/bytes-above-ascii', '/caf\xe9'),
  path('paths/space', '/a b'),
  path('paths/control-character', '/a\x01b'),
  path('paths/long', `/${'a'.repeat(6_000)}`),
  path('paths/no-slash', 'page'),
  path('paths/asterisk', '*'),
  { name: 'paths/asterisk-of-options', send: requestText({ method: 'OPTIONS', path: '*' }) },
]

export const redirects: readonly Case[] = [
  path('redirects/prefix', '/moved'),
  path('redirects/prefix-and-more', '/moved/a/b?c=d'),
  path('redirects/escapes', '/moved/a%20b%2Fc'),
  path('redirects/within-a-word', '/movedx'),
  { name: 'redirects/head', send: requestText({ method: 'HEAD', path: '/moved/a' }) },
  { name: 'redirects/post', send: withLength('body', { path: '/moved/a' }) },
]

export const rewrites: readonly Case[] = [
  path('rewrites/prefix', '/rewritten'),
  path('rewrites/prefix-and-more', '/rewritten/a/b?c=d'),
  path('rewrites/escapes', '/rewritten/a%20b'),
  path('rewrites/escaped-slash', '/rewritten/a%2Fb'),
  path('rewrites/final-slash', '/rewritten/'),
]

export const changes: readonly Case[] = [
  {
    name: 'changes/request',
    send: requestText({ path: '/changed', fields: ['X-Set: mine', 'X-Remove: a'] }),
  },
  { name: 'changes/absent-fields', send: requestText({ path: '/changed' }) },
  {
    name: 'changes/response',
    send: requestText({ path: '/changed' }),
    answer: ok(['X-Server-Set: mine', 'X-Server-Remove: a']),
  },
]
