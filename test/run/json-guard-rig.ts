import type { ServerResponse } from 'node:http'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest, TestResponse } from '../support/http-client.ts'
import {
  gateway,
  hostOf,
  policy,
  routeByHost,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import type { ReceivedRequest } from '../support/upstream.ts'

const email = { regex: { builtins: ['Email'] } }
const reject = { regex: { builtins: ['Email'], action: 'Reject' } }
const audit = { regex: { builtins: ['Email'], action: 'Audit' } }
const texts = ['messages[*].text', '$..note']
const asks = (more: object = {}) => ({
  paths: texts,
  webhook: { backendRef: toBackend('judge'), ...more },
})

/** The guards of each route by its name. The host of a route is `<name>.example.com`. */
const guards: Readonly<Record<string, object>> = {
  request: { request: [{ paths: texts, ...email }] },
  response: { response: [{ paths: texts, ...email }] },
  // The second guard reads the output of the first one.
  several: {
    request: [
      { paths: ['a'], regex: { matches: ['one'] } },
      { paths: ['a', 'b'], regex: { matches: ['<masked>', 'two'] } },
    ],
  },
  rejecting: {
    request: [
      { paths: texts, name: 'pii', ...reject, response: { statusCode: 422, showGuard: true } },
    ],
  },
  withholding: {
    response: [{ paths: texts, ...reject, response: { message: 'withheld' } }],
  },
  asking: { request: [asks()] },
  answering: { response: [asks()] },
  open: { request: [asks({ failureMode: 'FailOpen' })] },
  audited: { request: [{ paths: texts, ...audit }], response: [{ paths: texts, ...audit }] },
  passing: {
    request: [{ paths: texts, ...email }],
    response: [{ paths: texts, ...email }],
    otherTypes: 'Pass',
  },
  broken: { request: [{ paths: ['a', 'messages[?@.x]'], ...email }] },
  unguarded: { request: [{ paths: ['a'], regex: { matches: ['('] } }] },
}

/** Responds as the request says in its headers `answer-*`, with its body. */
function answer({ headers, body }: ReceivedRequest, response: ServerResponse): void {
  const { 'answer-type': type, 'answer-coding': coding, 'answer-status': status = '200' } = headers
  const cut = Number(headers['answer-cut'] ?? 0)
  response.statusCode = Number(status)
  if (type !== undefined) response.setHeader('content-type', type)
  if (coding !== undefined) response.setHeader('content-encoding', coding)
  response.setHeader('content-digest', 'sha-256=:b2xk:')
  const bytes = Buffer.from(body)
  if (cut === 0) {
    const encode = { gzip: gzipSync, br: brotliCompressSync }[`${coding}`]
    response.end(encode?.(bytes) ?? bytes)
    return
  }
  const sendNext = (at: number): void => {
    if (at >= bytes.length) response.end()
    else response.write(bytes.subarray(at, at + cut), () => sendNext(at + cut))
  }
  sendNext(0)
}

/** Refuses `bad`, fails for `broken`, and masks `secret`. */
function decide({ path, body }: ReceivedRequest, response: ServerResponse): void {
  const list = path === '/request' ? 'messages' : 'choices'
  const { [list]: items } = JSON.parse(body).body
  if (body.includes('broken')) response.statusCode = 500
  const masked = JSON.parse(JSON.stringify(items).replaceAll('secret', '######'))
  const action = body.includes('bad')
    ? { body: 'refused by the judge', status_code: 451 }
    : body.includes('secret')
      ? { body: { [list]: masked } }
      : {}
  response.end(JSON.stringify({ action }))
}

export const upstream = useUpstream('upstream', answer)
const judge = useUpstream('judge', decide)
const port = await freePort()
export const running = useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('main', upstream.port),
    staticBackend('judge', judge.port),
    ...Object.entries(guards).flatMap(([name, jsonGuard]) => [
      routeByHost(name, toBackend('main')),
      policy(name, `HTTPRoute/${name}`, { traffic: { jsonGuard } }),
    ]),
  ],
  arguments: ['--record', '100%'],
}))

export const json = { 'content-type': 'application/json' }

/** Posts a body to a route. */
export const post = (
  name: string,
  body: string | Uint8Array,
  headers: TestRequest['headers'] = json,
): Promise<TestResponse> =>
  running.send(port, { method: 'POST', host: hostOf(name), body, headers: { ...headers } })

/** Gets a response of a type with a body, in pieces of `cut` bytes. */
export const receive = (
  name: string,
  type: string,
  body: string,
  more: Readonly<Record<string, string>> = {},
): Promise<TestResponse> => post(name, body, { ...json, 'answer-type': type, ...more })

export const sentBody = (): string | undefined => upstream.received.at(-1)?.body
