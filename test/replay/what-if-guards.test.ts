/** `sluice what-if` for guards of models, which uses the verdicts in records. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  type Manifest,
  manifest,
  routeByPath,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startGuardVendor } from '../support/vendors/guard-vendors.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'

const folder = useFolder('sluice-what-if-guards-')
const records = join(folder, 'records')
const vendor = useFixture(startVendorA)
const presidio = useFixture(() => startGuardVendor('presidio'))
const judge = useFixture(() => startGuardVendor('judge'))
const port = await freePort()

const pattern = (action: string, more: Manifest = {}) => ({
  ...more,
  regex: { matches: ['secret'], action },
})
const byJudge = (action: string) => ({
  judge: { backendRef: toBackend('judge'), model: 'judge-1', action },
})
const byPresidio = (action: string) => ({
  presidio: { backendRef: toBackend('presidio'), action },
})
const chat = (...request: Manifest[]) =>
  aiBackend(
    'chat',
    { provider: { vendorA: {}, host: '127.0.0.1', port: vendor.port } },
    { ai: { promptGuard: { request } } },
  )
const running = useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('judge', judge.port),
    staticBackend('presidio', presidio.port),
    chat(pattern('Audit', { percent: 100, name: 'words' }), byJudge('Audit'), byPresidio('Audit')),
    routeByPath('chat'),
  ],
  args: ['--record', 'all', '--record-dir', records],
}))

beforeAll(async () => {
  vendor.answer = completes('hello')
  const contents = ['hello', 'my secret', 'a secret', 'a forbidden word', 'bob@example.com']
  for (const content of contents) {
    const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] })
    const headers = { 'content-type': 'application/json' }
    const path = '/chat/v1/chat/completions'
    const { status } = await running.send(port, { method: 'POST', path, headers, body })
    expect(status).toBe(200)
  }
  await running.stop()
})

async function whatIf(candidate: Manifest, ...more: string[]) {
  const file = join(folder, 'candidate.yaml')
  writeFileSync(file, manifest(candidate))
  const args = ['--log-file', running.logFile, '-f', file, '--overlay', '--record-dir', records]
  return sluice('what-if', ...args, ...more)
}

const audits = [byJudge('Audit'), byPresidio('Audit')]

describe('sluice what-if for guards that act instead of reporting', () => {
  it('counts the recorded messages that they would refuse or mask', async () => {
    const candidate = chat(pattern('Reject'), byJudge('Reject'), byPresidio('Mask'))
    const { stdout, code } = await whatIf(candidate, '--fail-on', 'allow-to-deny')
    expect(code).toBe(1)
    expect(stdout).toContain('Guards that change (3)')
    const of = 'GatewayBackend default/chat: request guard'
    expect(stdout).toContain(`${of} 0 (regex) would refuse 2 recorded messages\n`)
    expect(stdout).toContain(`${of} 1 (judge) would refuse 1 recorded message\n`)
    expect(stdout).toContain(`${of} 2 (presidio) would mask 1 recorded message\n`)
  })

  it('says that the records have no verdicts of a new guard', async () => {
    const added = { regex: { matches: ['other'], action: 'Reject' } }
    const { stdout } = await whatIf(chat(pattern('Audit', { name: 'words' }), ...audits, added))
    expect(stdout).toContain('Guards that change (1)')
    expect(stdout).toContain('request guard 3 (regex) changes no recorded verdict')
    expect(stdout).toContain(
      'the records have no verdicts of this guard; first apply it with action Audit',
    )
  })

  it('prints the numbers as JSON', async () => {
    const { stdout } = await whatIf(chat(pattern('Mask'), ...audits), '-o', 'json')
    expect(JSON.parse(stdout).guards).toEqual([
      {
        policy: 'GatewayBackend default/chat',
        guard: 'request guard 0 (regex)',
        refused: { records: 0, represented: 0 },
        masked: { records: 2, represented: 2 },
        passed: { records: 0, represented: 0 },
        limits: [],
      },
    ])
  })
})
