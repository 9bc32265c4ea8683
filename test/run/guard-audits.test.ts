/** Guards that only report: messages pass as they are, and records and metrics say what would have happened. */
import { beforeAll, describe, expect, it } from 'vitest'
import type { RecordedDecision } from '../../src/past/decisions/record.ts'
import { recordsIn } from '../support/decision-records.ts'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, routeByPath, staticBackend, toBackend } from '../support/manifests.ts'
import { masks, startWebhook } from '../support/vendors/guard-services.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'

const [port, stats, closed] = [await freePort(), await freePort(), await freePort()]
const folder = useFolder('sluice-audits-')
const vendor = useFixture(startVendorA)
const hook = useFixture(startWebhook)
const regex = { builtins: ['Email'] }
const running = useGateway(() => {
  const guarded = (name: string, request: object[], response: object[] = []) => [
    aiBackend(
      name,
      { provider: { vendorA: {}, host: '127.0.0.1', port: vendor.port } },
      { ai: { promptGuard: { request, ...(response.length > 0 && { response }) } } },
    ),
    routeByPath(name),
  ]
  const audit = { regex: { ...regex, action: 'Audit' } }
  const asks = (name: string, more: object) => ({
    webhook: { backendRef: toBackend(name), ...more },
  })
  return {
    manifests: [
      gateway(port),
      staticBackend('hook', hook.port),
      staticBackend('unreachable', closed),
      ...guarded('patterns', [{ ...audit, name: 'pii' }], [audit]),
      ...guarded('between', [{ regex }, audit], [{ regex: { matches: ['bob'] } }, audit]),
      ...guarded(
        'hooked',
        [asks('hook', { action: 'Audit' })],
        [asks('hook', { action: 'Audit' })],
      ),
      ...guarded('dead-audit', [asks('unreachable', { action: 'Audit' })]),
      ...guarded('dead-open', [asks('unreachable', { failureMode: 'FailOpen' })]),
      ...guarded('dead', [asks('unreachable', {})]),
      ...guarded('shown', [
        { regex: { ...regex, action: 'Reject' }, name: 'pii', response: { showGuard: true } },
        { regex: { matches: ['hidden'], action: 'Reject' } },
      ]),
    ],
    args: [
      ...['--record', 'all', '--record-dir', folder],
      ...['--stats-address', `127.0.0.1:${stats}`],
    ],
  }
})

const mail = 'bob@example.com'
// Not as a client writes it: the bytes must not change.
const bodyOf = (content: string, stream: boolean) =>
  `{"model": "m-1",  "stream": ${stream}, "messages": [{"content": "${content}", "role": "user"}]}`

let counted = 0

async function ask(name: string, content: string, stream = false) {
  const id = `${name}-${++counted}`
  const answer = await running.send(port, {
    method: 'POST',
    path: `/${name}/v1/chat/completions`,
    headers: { 'content-type': 'application/json', 'x-request-id': id },
    body: bodyOf(content, stream),
  })
  return { id, ...answer }
}

const answers = new Map<string, Awaited<ReturnType<typeof ask>>>()
/** What the vendor got. */
const sent = new Map<string, string>()
let records: ReadonlyMap<string, RecordedDecision>
let metrics = ''

beforeAll(async () => {
  vendor.answer = completes('Write to bob@', 'example.com')
  hook.answer = masks((text) => text.replace(/bob/g, 'eve'))
  const asked: [string, string, string, boolean?][] = [
    ['whole', 'patterns', mail],
    ['streamed', 'patterns', mail, true],
    ['between', 'between', mail],
    ['between streamed', 'between', mail, true],
    ['hooked', 'hooked', mail],
    ['hooked streamed', 'hooked', mail, true],
    ['dead audit', 'dead-audit', mail],
    ['dead open', 'dead-open', mail],
    ['dead', 'dead', mail],
    ['shown', 'shown', mail],
    ['hidden', 'shown', 'hidden'],
  ]
  for (const [key, name, content, stream] of asked) {
    const before = vendor.calls.length
    answers.set(key, await ask(name, content, stream))
    const call = vendor.calls[before]
    if (call !== undefined) sent.set(key, call.bytes.toString())
  }
  metrics = await (await fetch(`http://127.0.0.1:${stats}/metrics`)).text()
  await running.stop()
  records = recordsIn(folder)
}, 60_000)

const notesOf = (key: string) =>
  records.get(answers.get(key)?.id ?? '')?.steps.flatMap(({ notes = [] }) => notes)

describe('action: Audit', () => {
  it('[Regex.action=Audit] [PromptguardRequest.name] changes neither requests nor answers of a guard by patterns, and records its matches', () => {
    for (const key of ['whole', 'streamed']) {
      const isStream = key === 'streamed'
      if (isStream) expect(sent.get(key)).toContain(mail)
      else expect(sent.get(key)).toBe(bodyOf(mail, false))
      const body = answers.get(key)?.body ?? ''
      expect(isStream ? body.includes('example.com') : body.includes(mail)).toBe(true)
      expect(notesOf(key)).toEqual([
        'request guard 0 (pii, regex): Audit, 1 match of builtin Email',
        'response guard 0 (regex): Audit, 1 match of builtin Email',
      ])
    }
  })

  it('reads what the guards before it leave of a message, whole and streamed', () => {
    for (const key of ['between', 'between streamed']) {
      expect(sent.get(key)).toContain('<EMAIL_ADDRESS>')
      expect(answers.get(key)?.body).not.toContain('bob')
      expect(notesOf(key)).toEqual([
        'request guard 0 (regex): Mask, 1 match of builtin Email',
        'response guard 0 (regex): Mask, 1 match of pattern 0',
      ])
    }
  })

  it('[Webhook.action=Audit] asks the webhook, and records what it would have done', () => {
    for (const key of ['hooked', 'hooked streamed']) {
      expect(sent.get(key)).toContain(mail)
      expect(answers.get(key)?.body).toContain('bob@')
      expect(notesOf(key)).toEqual([
        'request guard 0 (webhook): Audit, would mask',
        'response guard 0 (webhook): Audit, would mask',
      ])
    }
  })

  it('is counted by rule and by what matched', () => {
    const labels = 'policy="GatewayBackend default/patterns"'
    const of = (name: string) =>
      metrics.split('\n').filter((line) => line.startsWith(name) && line.includes(labels))
    expect(of('sluice_guardrail_rule_checks_total').join('\n')).toMatch(
      /phase="Request",rule="0",guard="regex",action="Audit"\} 2$/m,
    )
    expect(of('sluice_guardrail_matches_total').join('\n')).toMatch(
      /phase="Response",rule="0",guard="regex",match="builtin Email",action="Audit"\} 2$/m,
    )
    expect(metrics).not.toContain(mail)
  })
})

describe('a guard whose service fails', () => {
  it('[Webhook.failureMode=FailOpen] lets the message pass only if configured or in an audit, and records it', () => {
    expect(answers.get('dead')?.status).toBe(503)
    for (const key of ['dead audit', 'dead open']) {
      expect(answers.get(key)?.status).toBe(200)
      expect(notesOf(key)?.[0]).toMatch(/^request guard 0 \(webhook\): FailOpen, /)
    }
  })
})

describe('a refusal', () => {
  it('[CustomResponse.showGuard] names the guard to the client only if configured', () => {
    expect(answers.get('shown')).toMatchObject({
      status: 403,
      headers: { 'x-sluice-guard': 'pii' },
    })
    expect(answers.get('hidden')?.status).toBe(403)
    expect(answers.get('hidden')?.headers['x-sluice-guard']).toBeUndefined()
  })
})
