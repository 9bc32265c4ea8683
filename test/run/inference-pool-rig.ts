import { beforeEach } from 'vitest'
import { type AskedPick, type Pick, startEndpointPicker } from '../support/endpoint-picker.ts'
import { useAuthority, useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest, TestResponse } from '../support/http-client.ts'
import {
  configMap,
  gateway,
  hostOf,
  httpRoute,
  inferencePool,
  manifest,
  pod,
  policy,
  service,
  toPool,
} from '../support/manifests.ts'
import type { Answer } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

export const chat = '{"model":"small","messages":[]}'
export const echo: Answer = (received, response) => {
  response.setHeader('x-from', received.upstream)
  response.end(JSON.stringify(received))
}

/** What the picker and the upstreams answer; each test may change it. */
export const given: { pick: (asked: AskedPick) => Pick; answer: Answer } = {
  pick: () => ({ endpoints: a() }),
  answer: echo,
}

export const a = () => `127.0.0.1:${upstreams.a.port}`
export const b = () => `127.0.0.1:${upstreams.b.port}`

const routed = (name: string, backendRefs: object[] = [toPool(name)], more: object = {}) =>
  httpRoute(name, { hostnames: [hostOf(name)], rules: [{ backendRefs, ...more }] })
const h2c = { appProtocol: 'kubernetes.io/h2c' }

export function members(extra: readonly ReturnType<typeof pod>[] = []): string {
  return manifest(
    pod('m-0', 'model', '127.0.0.1'),
    pod('m-1', 'model', '127.0.0.9', false),
    ...extra,
  )
}

const authority = useAuthority()
const answering: Answer = (received, response) => given.answer(received, response)
export const upstreams = { a: useUpstream('a', answering), b: useUpstream('b', answering) }
const decide = (asked: AskedPick) => given.pick(asked)
export const pickers = {
  plain: useFixture(() => startEndpointPicker(decide)),
  secure: useFixture(() => startEndpointPicker(decide, authority.issue(['picker.example.com']))),
  other: useFixture(() => startEndpointPicker(() => ({ endpoints: b() }))),
}
export const port = await freePort()
export const down = await freePort()
const later = await freePort()
const nobody = await freePort()
export const stats = `127.0.0.1:${await freePort()}`
export const running = useGateway(() => {
  const ports = [upstreams.a.port, upstreams.b.port, down]
  const open = { name: 'plain', failureMode: 'FailOpen' }
  const verified = { caCertificateRefs: [{ name: 'authority' }] }
  return {
    args: ['--stats-address', stats],
    manifests: {
      'pods.yaml': members(),
      'all.yaml': manifest(
        gateway(port),
        ...service('plain', [pickers.plain.port], h2c),
        ...service('secure', [pickers.secure.port], { appProtocol: 'http2' }),
        ...service('verified', [pickers.secure.port]),
        ...service('misnamed', [pickers.secure.port]),
        ...service('other', [pickers.other.port], h2c),
        ...service('gone', [nobody], h2c),
        configMap('authority', { 'ca.crt': authority.certificate }),
        policy('verified', 'Service/verified', {
          backend: { tls: { sni: 'picker.example.com', ...verified } },
        }),
        policy('misnamed', 'Service/misnamed', {
          backend: { tls: { sni: 'another.example.com', ...verified } },
        }),
        inferencePool('model', 'model', ports, { name: 'plain' }),
        routed('model'),
        // Only Pods that are up, since any of them may be chosen.
        inferencePool('open', 'model', ports.slice(0, 2), open),
        routed('open'),
        inferencePool('secure', 'model', ports, { name: 'secure' }),
        routed('secure'),
        inferencePool('verified', 'model', ports, { name: 'verified' }),
        routed('verified'),
        inferencePool('misnamed', 'model', ports, { name: 'misnamed' }),
        routed('misnamed'),
        inferencePool('closed', 'model', ports, { name: 'gone' }),
        routed('closed'),
        inferencePool('unasked', 'model', ports.slice(0, 2), { ...open, name: 'gone' }),
        routed('unasked'),
        inferencePool('missing', 'model', ports, { name: 'nowhere' }),
        routed('missing'),
        inferencePool('unpicked', 'model', ports, undefined),
        routed('unpicked'),
        inferencePool('empty', 'nobody', ports, open),
        routed('empty'),
        routed('nowhere'),
        inferencePool('later', 'later', [upstreams.b.port, later], { name: 'plain' }),
        routed('later'),
        inferencePool('other', 'model', ports, { name: 'other' }),
        routed('weighted', [toPool('model', { weight: 1 }), toPool('other', { weight: 1 })]),
        routed('retried', [toPool('model')]),
        policy('retried', 'HTTPRoute/retried', {
          traffic: { retry: { attempts: 2, codes: [503] } },
        }),
        routed('guarded', [toPool('model', { port: 1 })], {
          filters: [
            {
              type: 'RequestHeaderModifier',
              requestHeaderModifier: { set: [{ name: 'x-by-rule', value: 'yes' }] },
            },
          ],
        }),
        policy('guarded', 'HTTPRoute/guarded', {
          traffic: {
            authorization: {
              action: 'Deny',
              policy: { matchExpressions: ['request.headers["x-bad"] == "yes"'] },
            },
            transformation: { response: { set: [{ name: 'x-late', value: '"yes"' }] } },
          },
        }),
        policy('credentials', 'InferencePool/model', { backend: { auth: { key: 'for-models' } } }),
      ),
    },
  }
})

beforeEach(() => {
  given.pick = () => ({ endpoints: a() })
  given.answer = echo
})

export const ask = (name: string, more: TestRequest = {}): Promise<TestResponse> =>
  running.send(port, { host: hostOf(name), method: 'POST', path: '/v1/chat', body: chat, ...more })
/** The line of the access log of a request to a host, with a text in it. */
export const line = (name: string, text: string) =>
  waitFor(`a line with ${text}`, () =>
    running.stdout
      .split('\n')
      .find((one) => one.includes(`http.host=${hostOf(name)} `) && one.includes(text)),
  )
