import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useFolder } from '../support/fixture.ts'
import { sluice } from '../support/gateway.ts'

const folder = useFolder('sluice-import-bad-')

function write(name: string, content: string): string {
  const file = join(folder, name)
  writeFileSync(file, content)
  return file
}

describe('sluice import of input that it cannot read', () => {
  it('names file, line and column of broken YAML, and exits with 2', async () => {
    const file = write('broken.yaml', 'model_list:\n  - model_name: a\n  bad: [\n')
    const { code, stderr } = await sluice('import', '-f', file)
    expect(code).toBe(2)
    expect(stderr).toMatch(/broken\.yaml:\d+:\d+: not YAML/)
  })

  it('rejects more than 16 MiB', async () => {
    const file = write('large.yaml', `# ${'x'.repeat(16 * 1024 * 1024)}\n`)
    expect(await sluice('import', '-f', file)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the input has more than 16777216 bytes'),
    })
  })

  it('rejects values that are nested too deeply or contain themselves', async () => {
    const deep = write('deep.json', `{"targets":${'['.repeat(100)}${']'.repeat(100)}}`)
    const cyclic = write('cyclic.yaml', 'targets: &a\n  - targets: *a\n')
    for (const file of [deep, cyclic]) {
      const { code, stderr } = await sluice('import', '--from', 'portkey', '-f', file)
      expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining('nested') })
    }
  })

  it('asks for --from if the files fit no source, or several', async () => {
    const unknown = write('unknown.yaml', 'a: 1\n')
    const none = await sluice('import', '-f', unknown)
    expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining('--from') })
    const both = join(folder, 'both')
    mkdirSync(both)
    write('both/kong.yaml', '_format_version: "3.0"\n')
    write('both/litellm.yaml', 'model_list: []\n')
    const several = await sluice('import', '-f', both)
    expect(several).toMatchObject({ code: 2, stderr: expect.stringContaining('kong and litellm') })
  })

  it('never overwrites a file', async () => {
    const file = write('kong.yaml', '_format_version: "3.0"\n')
    const out = join(folder, 'out')
    expect((await sluice('import', '-f', file, '-o', out)).code).toBe(0)
    expect(await sluice('import', '-f', file, '-o', out)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('gateway.yaml exists'),
    })
  })

  it('reports a field of the wrong type with its line instead of failing', async () => {
    const file = write('types.yaml', '_format_version: "3.0"\nservices: 5\nroutes: { a: 1 }\n')
    const { code, stderr } = await sluice('import', '-f', file)
    expect(code).toBe(0)
    expect(stderr).toMatch(/types\.yaml:2:1: not converted: services: expected a list/)
  })
})
