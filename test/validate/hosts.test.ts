/** What `sluice validate` and `sluice status` report about hosts that are written as URLs. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { exitCode } from '../../src/tools/cli/shared/output.ts'
import { status } from '../../src/tools/cli/status/status.ts'
import { validate } from '../../src/tools/cli/validate/validate.ts'
import { manifest } from '../support/manifests.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-hosts-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const file = join(folder, 'backend.yaml')

const write = (spec: object): void => {
  const object = { apiVersion: 'sluice.dev/v1alpha1', kind: 'GatewayBackend' }
  writeFileSync(file, manifest({ ...object, metadata: { name: 'a' }, spec }))
}

async function reported(spec: object): Promise<string> {
  write(spec)
  const answer = await validate({ file: [file], output: 'text' }, () => {})
  expect(answer.exitCode).toBe(exitCode.negative)
  return answer.text().join('\n')
}

describe('a host that is written as a URL or with a port', () => {
  it.each([
    ['http://127.0.0.1', 'host: 127.0.0.1, port: 80'],
    ['127.0.0.1:8101', 'host: 127.0.0.1, port: 8101'],
    ['https://api.openai.com/v1', 'host: api.openai.com, port: 443'],
    ['[::1]:8080', 'host: [::1], port: 8080'],
    ['http://user:secret@a.test:81/x', 'host: a.test, port: 81'],
  ])('is refused with its line and with the fields to write: %s', async (host, fields) => {
    const message = `write host, port and path separately: ${fields}`
    const specs = [
      { static: { host, port: 1 } },
      { ai: { provider: { vendorA: {}, host } } },
      { ai: { groups: [{ providers: [{ name: 'a', vendorC: {}, host }] }] } },
      { mcp: { targets: [{ name: 'a', static: { host, port: 1 } }] } },
    ]
    for (const spec of specs) {
      const text = await reported(spec)
      expect(text).toContain(message)
      expect(text).toMatch(/backend\.yaml:\d+:\d+: /)
    }
  })

  it('is refused in the endpoint of Azure if it has a user', async () => {
    const vendorB = { endpoint: 'https://me@a.openai.azure.com', deploymentName: 'd' }
    const text = await reported({ ai: { provider: { vendorB } } })
    expect(text).toContain('must be a host name or an address, or the URL of a server')
  })

  it('makes a condition of the backend', async () => {
    write({ static: { host: 'https://a.test', port: 443 } })
    const answer = await status({ file: [file] }, () => {})
    const text = answer.text().join('\n')
    expect(text).toMatch(/Accepted\s+False\s+TranslationError/)
    expect(text).toContain('host: a.test, port: 443')
  })
})

describe('a path that is written as a URL', () => {
  it('is refused with the path to write', async () => {
    const url = 'https://id.test/realms/a/certs?x=1'
    const text = await reported({
      mcp: { targets: [{ name: 'a', static: { host: 'a', port: 1, path: url } }] },
    })
    expect(text).toContain(
      'must be a path; write the host of a URL separately: /realms/a/certs?x=1',
    )
  })
})
