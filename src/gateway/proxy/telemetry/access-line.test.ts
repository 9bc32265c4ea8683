import { describe, expect, it } from 'vitest'
import type { ServerExchange } from '../../../engines/http/contracts/requests.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import { Learned } from '../../../ground/exchange/learned.ts'
import type { AccessLogRules, AttributeChanges } from '../../../ground/exchange/observe.ts'
import { AccessLines, type AccessLogFormat } from './access-line.ts'
import type { AccessLog } from './access-log.ts'
import { LineBytes } from './line-bytes.ts'
import { Timestamps } from './timestamp.ts'
import type { AccessRecord } from './types.ts'

const time = '2026-01-02T03:04:05.678901Z'
const source = { address: '10.0.0.9', port: 40_000 }
const exchange = (error?: GatewayError) =>
  ({
    source,
    request: { version: '1.1' },
    error,
    endedAt: 0,
    learned: new Learned(),
  }) as unknown as ServerExchange

/** The lines that are written, in memory. */
class Written {
  readonly #bytes = new LineBytes(64)
  readonly #lines: AccessLines

  constructor(format: AccessLogFormat) {
    const log = { begin: () => this.#bytes, end: () => undefined } as unknown as AccessLog
    this.#lines = new AccessLines(
      log,
      format,
      new Timestamps(
        () => Date.parse(time) + 0.901,
        () => 0,
      ),
    )
  }

  #of(write: (lines: AccessLines) => void): string {
    write(this.#lines)
    return this.#bytes.take(this.#bytes.length).toString()
  }

  request(of: ServerExchange, access: AccessRecord): string {
    return this.#of((lines) => lines.request(of, access))
  }

  badHead(...args: Parameters<AccessLines['badHead']>): string {
    return this.#of((lines) => lines.badHead(...args))
  }
}

const full: AccessRecord = {
  gateway: 'default/public',
  listener: 'web',
  route: 'default/shop',
  rule: 'carts',
  endpoint: '10.1.2.3:8080',
  backend: 'service/default/shop:80',
  reason: 'Upstream',
  status: 200,
  durationMs: 12.9,
  retries: 0,
  protocol: 'http',
  method: 'GET',
  host: 'shop.example.com',
  path: '/carts?id=1',
}

const failed: AccessRecord = {
  reason: 'NotFound',
  error: 'route_not_found: "a" and\nb',
  status: 404,
  durationMs: 0,
  retries: 0,
  protocol: 'http',
  method: 'GET',
  host: 'x',
  path: '/',
}

describe('an access log line as text', () => {
  const text = new Written('text')

  it('has its fields in order, separated by tabs and spaces', () =>
    expect(text.request(exchange(), full)).toBe(
      `${time}\tinfo\trequest gateway=default/public listener=web route_rule=carts` +
        ' route=default/shop endpoint=10.1.2.3:8080 src.addr=10.0.0.9:40000 http.method=GET' +
        ' http.host=shop.example.com http.path=/carts?id=1 http.version=HTTP/1.1' +
        ' http.status=200 protocol=http duration=12ms\n',
    ))

  it('omits missing fields, quotes the error and includes the reason of a refusal', () =>
    expect(text.request(exchange(), failed)).toBe(
      `${time}\tinfo\trequest src.addr=10.0.0.9:40000 http.method=GET http.host=x http.path=/` +
        ' http.version=HTTP/1.1 http.status=404 protocol=http' +
        ' error="route_not_found: \\"a\\" and\\nb" reason=NotFound duration=0ms\n',
    ))

  it.each(['a b', 'a\nb', 'a\u001b[31mb', 'a\u0085b', 'a\u2028b'])(
    'keeps the value %j on one line',
    (path) => {
      const line = text.request(exchange(), { ...failed, path })
      const value = / http\.path=("(?:[^"\\]|\\.)*") http\.version=/.exec(line)?.[1]
      expect(JSON.parse(value ?? '""')).toBe(path)
      for (const bad of ['\n', '\u001b', '\u0085', '\u2028']) {
        expect(line.slice(0, -1)).not.toContain(bad)
      }
    },
  )

  it('has the status of the error if the client got no status', () => {
    const gone = { ...failed, status: 0 }
    expect(text.request(exchange(new GatewayError('client_closed')), gone)).toContain(
      ' http.status=499 ',
    )
    expect(text.request(exchange(), gone)).not.toContain('http.status')
  })

  it('writes IPv6 addresses in brackets', () => {
    const v6 = { ...exchange(), source: { address: '::1', port: 5 } }
    expect(text.request(v6, failed)).toContain(' src.addr=[::1]:5 ')
  })

  it('is written for a head that cannot be parsed', () =>
    expect(text.badHead(source, new GatewayError('bad_request', 'bare LF'), 'http')).toBe(
      `${time}\tinfo\trequest src.addr=10.0.0.9:40000 http.status=400 protocol=http` +
        ' error="invalid request: bare LF" reason=InvalidRequest duration=0ms\n',
    ))
})

describe('an access log line as JSON', () => {
  const json = new Written('json')

  it('is one flat object with the same fields in the same order', () => {
    const line = json.request(exchange(), full)
    expect(line.endsWith('}\n')).toBe(true)
    expect(Object.entries(JSON.parse(line))).toEqual([
      ['level', 'info'],
      ['time', time],
      ['scope', 'request'],
      ['gateway', 'default/public'],
      ['listener', 'web'],
      ['route_rule', 'carts'],
      ['route', 'default/shop'],
      ['endpoint', '10.1.2.3:8080'],
      ['src.addr', '10.0.0.9:40000'],
      ['http.method', 'GET'],
      ['http.host', 'shop.example.com'],
      ['http.path', '/carts?id=1'],
      ['http.version', 'HTTP/1.1'],
      ['http.status', 200],
      ['protocol', 'http'],
      ['duration', '12ms'],
    ])
  })

  it('is always one valid line, whatever a client sends', () => {
    const path = '/"\\\n\u0001\u2028é'
    const line = json.request(exchange(), { ...failed, path })
    expect(line.indexOf('\n')).toBe(line.length - 1)
    expect(JSON.parse(line)).toMatchObject({ 'http.path': path, error: failed.error })
  })

  it('is written for a head that cannot be parsed', () =>
    expect(
      JSON.parse(json.badHead(source, new GatewayError('headers_too_large'), 'https')),
    ).toMatchObject({ 'http.status': 431, reason: 'InvalidRequest', protocol: 'https' }))
})

const noParts = { requestBody: false, responseBody: false, modelTexts: false }

describe('an access log line that a policy changes', () => {
  const shaped = (
    format: AccessLogFormat,
    access: AccessRecord,
    changes: Partial<AttributeChanges>,
  ) =>
    new Written(format).request(exchange(), {
      ...access,
      accessLog: {
        parts: noParts,
        accepts: () => true,
        changes: { removed: new Set(), added: () => [], ...changes },
        export: undefined,
      },
    })
  const rich: AccessRecord = {
    ...full,
    ...failed,
    identity: 'spiffe://a/ns/b/sa/c d',
    subject: 'a "user"',
    grpcStatus: 7,
    traceId: '0af7651916cd43dd8448eb211c80319c',
    spanId: 'b7ad6b7169203331',
    retries: 2,
  }

  it.each(['text', 'json'] as const)(
    'is the same in %s if the policy changes nothing',
    (format) => {
      for (const access of [full, failed, rich, { ...rich, status: 0, host: '' }]) {
        expect(shaped(format, access, {})).toBe(new Written(format).request(exchange(), access))
      }
    },
  )

  it('is not written if the policy skips the exchange', () => {
    const accessLog: AccessLogRules = {
      parts: noParts,
      accepts: () => false,
      changes: undefined,
      export: undefined,
    }
    expect(new Written('text').request(exchange(), { ...full, accessLog })).toBe('')
  })

  it('omits removed attributes and ends with added ones', () => {
    const changes: Partial<AttributeChanges> = {
      removed: new Set(['http.path', 'gateway', 'unknown']),
      added: () => [
        ['team', 'a b'],
        ['http.status', 'replaced'],
        ['n', 12345678901234567890n],
        ['d', 1.5],
        ['yes', true],
        ['list', ['a', { b: 1n }]],
        ['odd name', 'x=y'],
        ['none', ''],
      ],
    }
    const text = shaped('text', full, changes)
    expect(text).not.toMatch(/ (http\.path|gateway|http\.status=200)=?/)
    expect(text).toMatch(
      /^.*\tinfo\trequest listener=web .* duration=12ms team="a b" http\.status=/,
    )
    expect(text.slice(text.indexOf(' team='))).toBe(
      ' team="a b" http.status=replaced n=12345678901234567890 d=1.5 yes=true' +
        ' list="[\\"a\\",{\\"b\\":1}]" "odd name"="x=y" none=""\n',
    )
    const json = JSON.parse(shaped('json', full, changes)) as Record<string, unknown>
    expect(json).toMatchObject({
      team: 'a b',
      'http.status': 'replaced',
      d: 1.5,
      yes: true,
      list: ['a', { b: 1 }],
    })
    expect(json).not.toHaveProperty('gateway')
  })
})
