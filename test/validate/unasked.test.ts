/** What `sluice status` says about proxies if it reads manifests only. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { status } from '../../src/tools/cli/status/status.ts'
import { gateway, manifest } from '../support/manifests.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-unasked-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const file = join(folder, 'gateway.yaml')

async function programmed(spec: Readonly<Record<string, unknown>>): Promise<string[]> {
  writeFileSync(file, manifest(gateway(8080, spec)))
  const answer = await status({ file: [file] }, () => {})
  const { objects } = answer.json as { objects: readonly { readonly kind: string }[] }
  const json = JSON.stringify(objects.find(({ kind }) => kind === 'Gateway'))
  const rows = answer.text().join('\n').split('\n')
  const lines = rows.filter((row) => / Programmed /.test(row))
  const inJson = [...json.matchAll(/"type":"Programmed","status":"(\w+)","reason":"(\w+)"/g)]
  expect(inJson).toHaveLength(lines.length)
  inJson.forEach(([, state = '', reason = ''], at) => {
    expect(lines[at]).toMatch(new RegExp(`Programmed +${state} +${reason}`))
  })
  return inJson.map(([, state, reason]) => `${state} ${reason}`)
}

describe('sluice status -f', () => {
  it('does not report that proxies have done nothing, since it asks none', async () => {
    expect(await programmed({})).toEqual(['Unknown NotAsked', 'Unknown NotAsked'])
    const addresses = [{ type: 'IPAddress', value: '192.0.2.1' }]
    expect((await programmed({ addresses }))[0]).toBe('Unknown NotAsked')
  })

  it('still reports listeners that cannot be programmed', async () => {
    const tls = { certificateRefs: [{ name: 'missing' }] }
    const listeners = [{ name: 'a', port: 443, protocol: 'HTTPS', tls }]
    expect(await programmed({ listeners })).toContain('False Invalid')
  })
})
