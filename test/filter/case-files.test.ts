/** The case files of masks in test/core, sent through the filter in a real Envoy. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { startEnvoy } from '../support/envoy.ts'
import { useFixture } from '../support/fixture.ts'
import { describeWithParts } from '../support/parts.ts'
import { startUpstream } from '../support/upstream.ts'
import { manifestsFor } from './manifests.ts'

const folder = join(import.meta.dirname, '../core/regex/masks')

interface MaskCase {
  readonly title: string
  readonly rules: readonly {
    readonly pattern?: string
    readonly builtin?: string
    readonly replacement: string
  }[]
  readonly hold: number
  readonly text: string
  readonly masked: string
}

interface BuiltinCase {
  readonly name: string
  readonly text: string
  readonly masked: string
}

const builtinCases: BuiltinCase[] = JSON.parse(readFileSync(join(folder, 'builtins.json'), 'utf8'))
const patternFile = JSON.parse(readFileSync(join(folder, 'patterns.json'), 'utf8'))
/** Guards replace matches of patterns by one text, so that cases with builtins or long repeats are left out. */
const patternCases = (patternFile.cases as MaskCase[]).filter(
  ({ rules, text }) =>
    typeof text === 'string' && rules.every(({ pattern }) => pattern !== undefined),
)

const expected = ({ rules, masked }: MaskCase) =>
  rules.reduce((text, { replacement }) => text.replaceAll(replacement, '<masked>'), masked)

const builtins = ['Ssn', 'CreditCard', 'PhoneNumber', 'Email', 'CaSin']

/** One route and one backend for each guard; the header x-case chooses. */
function manifestsOf(guards: readonly object[]): object[] {
  const [gateway, route, backend] = manifestsFor({}) as [object, RouteObject, BackendObject]
  const rules = guards.map((_, at) => ({
    matches: [{ headers: [{ name: 'x-case', value: `${at}` }] }],
    backendRefs: [{ group: 'sluice.dev', kind: 'GatewayBackend', name: `model-${at}` }],
  }))
  const backends = guards.map((regex, at) => ({
    ...backend,
    metadata: { ...backend.metadata, name: `model-${at}` },
    spec: {
      ...backend.spec,
      policies: { ai: { promptGuard: { request: [{ regex }], response: [{ regex }] } } },
    },
  }))
  return [gateway, { ...route, spec: { ...route.spec, rules } }, ...backends]
}

interface RouteObject {
  readonly spec: object
}

interface BackendObject {
  readonly metadata: object
  readonly spec: object
}

describeWithParts(['envoy'], 'the filter in Envoy, on the case files of masks', () => {
  /** Answers with the content of the request, whole or in a stream of single characters. */
  const vendor = useFixture(() =>
    startUpstream('vendor', ({ path, headers }, response) => {
      const content = Buffer.from(`${headers['x-content']}`, 'base64').toString()
      if (path.startsWith('/whole')) {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ choices: [{ index: 0, message: { content } }] }))
        return
      }
      response.setHeader('content-type', 'text/event-stream')
      const delta = (piece: string) => ({ choices: [{ index: 0, delta: { content: piece } }] })
      const events = [...content].map((piece) => `data: ${JSON.stringify(delta(piece))}\n\n`)
      response.end(`${events.join('')}data: [DONE]\n\n`)
    }),
  )
  const guards = [
    { builtins },
    ...patternCases.map(({ rules }) => ({ matches: rules.map(({ pattern }) => pattern) })),
  ]
  const envoy = useFixture(() =>
    startEnvoy({ manifests: manifestsOf(guards), upstream: vendor.port }),
  )

  async function masked(guard: number, text: string) {
    const ask = async (path: string) => {
      const answer = await fetch(`${envoy.base}/${path}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'x-case': `${guard}`, 'x-content': Buffer.from(text).toString('base64') },
        body: JSON.stringify({ messages: [{ content: text }] }),
      })
      return answer.text()
    }
    const whole = JSON.parse(await ask('whole')).choices[0].message.content
    const sent = JSON.parse(vendor.received.at(-1)?.body ?? '').messages[0].content
    const streamed = (await ask('stream'))
      .split('\n\n')
      .filter((event) => event.startsWith('data: {'))
      .map((event) => JSON.parse(event.slice(6)).choices[0].delta.content)
      .join('')
    return { sent, whole, streamed }
  }

  it.each(builtinCases)('masks $name: $text', async ({ text, masked: wanted }) => {
    expect(await masked(0, text)).toEqual({ sent: wanted, whole: wanted, streamed: wanted })
  })

  it.each(patternCases.map((one, at) => ({ ...one, at })))('masks $title', async (one) => {
    const wanted = expected(one)
    const found = await masked(one.at + 1, one.text)
    expect(found).toEqual({ sent: wanted, whole: wanted, streamed: wanted })
  })
})
