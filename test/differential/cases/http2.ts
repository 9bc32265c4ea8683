/** Clients that speak HTTP/2, in front of a server that speaks HTTP/1.1. */
import { type Case, chunked, fieldsOf, ok, responseText, site } from '../case.ts'

const extended = (protocol: string) =>
  [
    [':method', 'CONNECT'],
    [':protocol', protocol],
    [':scheme', 'http'],
    [':authority', site],
    [':path', '/socket'],
  ] as const

export const http2: readonly Case[] = [
  { name: 'http2/get', fields: fieldsOf() },
  { name: 'http2/post', fields: fieldsOf('POST'), body: 'body' },
  {
    name: 'http2/post-with-length',
    fields: fieldsOf('POST', '/page', [['content-length', '4']]),
    body: 'body',
  },
  {
    name: 'http2/wrong-length',
    fields: fieldsOf('POST', '/page', [['content-length', '9']]),
    body: 'body',
  },
  { name: 'http2/post-without-a-body', fields: fieldsOf('POST') },
  {
    name: 'http2/cookies',
    report: 'cloudflare/pingora#892',
    fields: fieldsOf('GET', '/page', [
      ['cookie', 'a=1'],
      ['cookie', 'b=2'],
    ]),
  },
  { name: 'http2/te-trailers', fields: fieldsOf('GET', '/page', [['te', 'trailers']]) },
  { name: 'http2/te-gzip', fields: fieldsOf('GET', '/page', [['te', 'gzip']]) },
  { name: 'http2/connection', fields: fieldsOf('GET', '/page', [['connection', 'close']]) },
  { name: 'http2/keep-alive', fields: fieldsOf('GET', '/page', [['keep-alive', 'a']]) },
  {
    name: 'http2/transfer-encoding',
    fields: fieldsOf('POST', '/page', [['transfer-encoding', 'chunked']]),
    body: 'body',
  },
  { name: 'http2/upgrade', fields: fieldsOf('GET', '/page', [['upgrade', 'a']]) },
  { name: 'http2/capitals-in-a-name', fields: fieldsOf('GET', '/page', [['X-Capital', 'a']]) },
  { name: 'http2/line-feed-in-a-value', fields: fieldsOf('GET', '/page', [['x-a', 'a\nb']]) },
  { name: 'http2/spaces-around-a-value', fields: fieldsOf('GET', '/page', [['x-a', ' a ']]) },
  { name: 'http2/space-in-a-name', fields: fieldsOf('GET', '/page', [['x a', 'a']]) },
  { name: 'http2/host', fields: fieldsOf('GET', '/page', [['host', site]]) },
  { name: 'http2/another-host', fields: fieldsOf('GET', '/page', [['host', 'other.example.com']]) },
  {
    name: 'http2/host-alone',
    fields: [...fieldsOf().filter(([name]) => name !== ':authority'), ['host', site]],
  },
  { name: 'http2/no-host', fields: fieldsOf().filter(([name]) => name !== ':authority') },
  { name: 'http2/no-path', fields: fieldsOf().filter(([name]) => name !== ':path') },
  { name: 'http2/empty-path', fields: fieldsOf('GET', '') },
  { name: 'http2/path-without-a-slash', fields: fieldsOf('GET', 'page') },
  { name: 'http2/absolute-path', fields: fieldsOf('GET', `http://${site}/page`) },
  { name: 'http2/space-in-the-path', fields: fieldsOf('GET', '/a b') },
  { name: 'http2/fragment', fields: fieldsOf('GET', '/page#part') },
  {
    name: 'http2/scheme-of-https',
    fields: fieldsOf().map(
      ([name, value]) => [name, name === ':scheme' ? 'https' : value] as const,
    ),
  },
  { name: 'http2/unknown-pseudo-field', fields: fieldsOf('GET', '/page', [[':other', 'a']]) },
  { name: 'http2/path-twice', fields: fieldsOf('GET', '/page', [[':path', '/other']]) },
  {
    name: 'http2/late-pseudo-field',
    fields: [...fieldsOf().slice(0, 3), ['x-a', 'a'], [':path', '/page']],
  },
  { name: 'http2/no-route', fields: fieldsOf('GET', '/other', [], 'only.example.com') },
  { name: 'http2/redirect', fields: fieldsOf('GET', '/moved/a?b') },
  {
    name: 'http2/connect',
    fields: [
      [':method', 'CONNECT'],
      [':authority', `${site}:443`],
    ],
  },
  { name: 'http2/connect-to-another-protocol', fields: extended('other') },
  {
    name: 'http2/request-trailers',
    fields: fieldsOf('POST'),
    body: 'body',
    trailers: [['x-end', 'a']],
  },
  {
    name: 'http2/pseudo-field-in-trailers',
    fields: fieldsOf('POST'),
    body: 'body',
    trailers: [[':path', '/a']],
  },
  {
    name: 'http2/head',
    fields: fieldsOf('HEAD'),
    answer: responseText('200 OK', ['Content-Length: 5']),
  },
  {
    name: 'http2/chunks',
    fields: fieldsOf(),
    answer: responseText('200 OK', ['Transfer-Encoding: chunked'], chunked(['he', 'llo'])),
  },
  {
    name: 'http2/response-trailers',
    fields: fieldsOf('GET', '/page', [['te', 'trailers']]),
    answer: responseText(
      '200 OK',
      ['Transfer-Encoding: chunked'],
      chunked(['hello'], ['X-End: a']),
    ),
  },
  {
    name: 'http2/until-the-end',
    fields: fieldsOf(),
    answer: [{ on: 'request', write: responseText('200 OK', [], 'hello'), ending: 'end' }],
  },
  {
    name: 'http2/cut',
    fields: fieldsOf(),
    answer: [
      {
        on: 'request',
        write: responseText('200 OK', ['Content-Length: 9'], 'hello'),
        ending: 'end',
      },
    ],
  },
  {
    name: 'http2/cut-chunks',
    fields: fieldsOf(),
    answer: [
      {
        on: 'request',
        write: responseText('200 OK', ['Transfer-Encoding: chunked'], '5\r\nhello\r\n'),
        ending: 'end',
      },
    ],
  },
  { name: 'http2/204', fields: fieldsOf(), answer: responseText('204 No Content', []) },
  {
    name: 'http2/304',
    fields: fieldsOf(),
    answer: responseText('304 Not Modified', ['ETag: "a"', 'Content-Length: 5']),
  },
  {
    name: 'http2/hints',
    report: 'nginx/nginx#884',
    fields: fieldsOf(),
    answer: `HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n${ok()}`,
  },
  {
    name: 'http2/connection-fields-in-response',
    fields: fieldsOf(),
    answer: ok(['Connection: x-own', 'X-Own: a', 'Keep-Alive: timeout=5']),
  },
  {
    name: 'http2/bad-status-line',
    report: 'nginx/nginx#378',
    fields: fieldsOf(),
    answer: [
      {
        on: 'request',
        write: responseText('404: Not Found', ['Content-Length: 0']),
        ending: 'end',
      },
    ],
  },
  {
    name: 'http2/expect',
    fields: fieldsOf('POST', '/page', [['expect', '100-continue']]),
    body: 'body',
    answer: [
      { on: 'head', write: 'HTTP/1.1 100 Continue\r\n\r\n' },
      { on: 'request', write: ok() },
    ],
  },
]
