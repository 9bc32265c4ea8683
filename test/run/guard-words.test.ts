/** Guards with lists of words: in the policy and in a ConfigMap, in requests, responses, streams and audits. */
import { beforeAll, describe, expect, it } from 'vitest'
import { recordsIn } from '../support/decision-records.ts'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, routeByPath } from '../support/manifests.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'

const port = await freePort()
const folder = useFolder('sluice-words-')
const vendor = useFixture(startVendorA)
const words = ['Jane Doe', 'Zoë', 'Projekt Straße']
const running = useGateway(() => {
  const guarded = (name: string, regex: object) => [
    aiBackend(
      name,
      { provider: { vendorA: {}, host: '127.0.0.1', port: vendor.port } },
      { ai: { promptGuard: { request: [{ regex }], response: [{ regex }] } } },
    ),
    routeByPath(name),
  ]
  const wordsRef = { name: 'staff' }
  return {
    manifests: [
      gateway(port),
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'staff' },
        data: { words: '\n  John Smith\r\n\nMaría\n', long: `ok\n${'x'.repeat(257)}` },
      },
      ...guarded('mask', { words, wordsRef, builtins: ['Email'] }),
      ...guarded('reject', { words, action: 'Reject' }),
      ...guarded('audit', { words, action: 'Audit' }),
      ...guarded('back', { words, action: 'Reversible' }),
      ...guarded('missing', { wordsRef: { name: 'nobody' } }),
      ...guarded('no-entry', { words, wordsRef: { name: 'staff', key: 'names' } }),
      ...guarded('too-long', { wordsRef: { name: 'staff', key: 'long' } }),
    ],
    args: ['--record', 'all', '--record-dir', folder],
  }
})

let counted = 0

async function ask(name: string, content: string, stream = false) {
  const id = `${name}-${++counted}`
  const answer = await running.send(port, {
    method: 'POST',
    path: `/${name}/v1/chat/completions`,
    headers: { 'content-type': 'application/json', 'x-request-id': id },
    body: JSON.stringify({ model: 'm-1', stream, messages: [{ role: 'user', content }] }),
  })
  return { id, ...answer }
}

const sentText = () => vendor.calls.at(-1)?.bytes.toString() ?? ''

describe('guards with lists of words', () => {
  beforeAll(() => {
    vendor.answer = completes('Zoe', '\u0308 and JA', 'NE DOE, not Jan', 'et Doe')
  })

  it('[Regex.words] [Regex.wordsRef] [WordsRef.name] mask the words of the policy and of a ConfigMap, with accents in both forms', async () => {
    const text = 'jane doe, JOHN SMITH, Mari\u0301a, Zoës, a@b.example'
    for (const stream of [false, true]) {
      const { status, body } = await ask('mask', text, stream)
      expect(status).toBe(200)
      expect(sentText()).toContain('<masked>, <masked>, <masked>, Zoës, <EMAIL_ADDRESS>')
      expect(body).not.toMatch(/Zoe|NE DOE/)
      expect(textOf(body, stream)).toBe('<masked> and <masked>, not Janet Doe')
    }
  })

  it('refuse requests with a word', async () => {
    expect((await ask('reject', 'about PROJEKT STRASSE')).status).toBe(200)
    expect((await ask('reject', 'about PROJEKT STRAẞE')).status).toBe(403)
  })

  it('restore words that they mask reversibly', async () => {
    vendor.answer = (call, response) => completes(`to ${placeholderIn(call.text)}`)(call, response)
    const { status, body } = await ask('back', 'write to jane DOE')
    expect(status).toBe(200)
    expect(sentText()).not.toMatch(/jane/i)
    expect(body).toContain('to jane DOE')
    vendor.answer = completes('ok')
  })

  it('change nothing in an audit, and record how many words matched but not which', async () => {
    const { id, status } = await ask('audit', 'Zoë and zoë')
    expect(status).toBe(200)
    expect(sentText()).toContain('Zoë and zoë')
    await running.stop()
    const notes = recordsIn(folder)
      .get(id)
      ?.steps.flatMap(({ notes = [] }) => notes)
    expect(notes).toEqual(['request guard 0 (regex): Audit, 2 matches of words'])
    await running.start()
  })

  it('[WordsRef.key] refuse requests if the list cannot be used', async () => {
    const problems = {
      missing: 'regex.wordsRef: ConfigMap nobody does not exist',
      'no-entry': 'regex.wordsRef: ConfigMap default/staff has no text names',
      'too-long': 'long: a word is longer than 256 bytes (word 2)',
    }
    for (const [name, problem] of Object.entries(problems)) {
      expect((await ask(name, 'hello')).status, name).toBe(500)
      expect(running.stdout + running.stderr).toContain(problem)
    }
  })
})

const placeholderIn = (text: string) => /\[[A-Z_]+:[^\]]+\]/.exec(text)?.[0] ?? 'no placeholder'

/** The text of a completion, or of its events. */
function textOf(body: string, isStream: boolean): string {
  const documents = isStream
    ? [...body.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data ?? ''))
    : [JSON.parse(body)]
  return documents
    .flatMap(({ choices }) => choices)
    .map((choice) => (choice.delta ?? choice.message).content ?? '')
    .join('')
}
