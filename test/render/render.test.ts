/**
 * Golden cases of `sluice render`: `in.yaml` gives `out.yaml`, and `told.txt` for the messages on
 * stderr. Update them with `UPDATE=1 npx vitest run test/render`.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { render } from '../../src/tools/cli/render/render.ts'
import { printResult } from '../../src/tools/cli/shared/output.ts'
import { packageVersion } from '../../src/tools/cli/shared/version.ts'

const cases = readdirSync(import.meta.dirname, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name)
  .sort()

async function run(name: string, more: { xdsCaFile?: string; output?: 'json' } = {}) {
  const folder = join(import.meta.dirname, name)
  const lines: { out: string[]; told: string[] } = { out: [], told: [] }
  const { output = 'yaml', ...options } = more
  const report = (text: string) => void lines.told.push(text)
  const answer = await render({ file: [join(folder, 'in.yaml')], ...options }, report)
  const code = printResult(answer, output, { print: (text) => void lines.out.push(text), report })
  const plain = (all: string[]) =>
    all.join('\n').replaceAll(packageVersion(), 'VERSION').replaceAll(`${folder}/`, '')
  return { code, out: plain(lines.out), told: plain(lines.told) }
}

function matches(folder: string, file: string, text: string): void {
  const path = join(import.meta.dirname, folder, file)
  const content = text === '' ? '' : `${text}\n`
  if (process.env.UPDATE !== undefined && content !== '') writeFileSync(path, content)
  expect(content, `${folder}/${file}`).toBe(existsSync(path) ? readFileSync(path, 'utf8') : '')
}

describe('sluice render', () => {
  afterEach(() => vi.unstubAllEnvs())

  it.each(cases)('prints the expected objects for the case %s', async (name) => {
    if (name === 'xds-tls') {
      const ca = join(import.meta.dirname, name, 'ca.crt')
      vi.stubEnv('SLUICE_XDS_TLS_ENABLED', 'true')
      vi.stubEnv('SLUICE_XDS_SERVICE_NAME', 'edge-control')
      vi.stubEnv('POD_NAMESPACE', 'platform')
      await expect(run(name)).rejects.toThrow(/--xds-ca-file/)
      const { out, told } = await run(name, { xdsCaFile: ca })
      matches(name, 'out.yaml', out)
      matches(name, 'told.txt', told)
      return
    }
    const { code, out, told } = await run(name)
    matches(name, 'out.yaml', out)
    matches(name, 'told.txt', told)
    expect(code).toBe(name === 'refused' ? 1 : 0)
  })

  it('gives proxies the place of grants that the controller has', async () => {
    const own = /name: SLUICE_GRANT_STORE\n\s+value: (\S+)/
    expect((await run('plain')).out).not.toMatch(own)
    vi.stubEnv('SLUICE_PROXY_GRANT_STORE', 'nats://nats.example:4222')
    expect(own.exec((await run('plain')).out)?.[1]).toBe('nats://nats.example:4222')
  })

  it('prints a JSON list, only of the requested Gateway if one is named', async () => {
    const { out } = await run('plain', { output: 'json' })
    const list = JSON.parse(out) as { kind: string; items: { metadata: { name: string } }[] }
    expect(list.kind).toBe('List')
    expect(new Set(list.items.map(({ metadata }) => metadata.name)).size).toBe(2)
  })
})
