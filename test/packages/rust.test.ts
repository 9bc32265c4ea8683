/** The Rust crate, from the package that users download, as it was unpacked. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { countsOf, hostSuites } from '../hosts/suites.ts'
import { describeWithParts, partPath } from '../support/parts.ts'
import { encodings } from './models.ts'

const root = join(import.meta.dirname, '..', '..')
const testTime = 600_000
const suites = hostSuites['`sluice-core` in Rust']

describeWithParts(['cargo', 'rust-wasmtime'], 'the Rust crate [design.embed]', () => {
  let folder: string
  let crate: string

  function run(command: string, args: readonly string[], cwd: string): string {
    const env = {
      ...process.env,
      PATH: `${dirname(partPath('cargo'))}:${process.env.PATH}`,
      CARGO_TARGET_DIR: partPath('rust-wasmtime'),
      CARGO_NET_OFFLINE: 'true',
      // As in examples/embedding/rust, so that wasmtime is not compiled again.
      CARGO_PROFILE_RELEASE_OPT_LEVEL: '1',
      CARGO_PROFILE_RELEASE_CODEGEN_UNITS: '16',
      CASES: join(root, 'test', 'core'),
      MODELS: encodings,
    }
    const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8', cwd, env })
    expect(status, stdout + stderr).toBe(0)
    return stdout
  }

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-rust-'))
    run(process.execPath, [join(root, 'scripts', 'packages', 'rust.mjs'), folder], root)
    const [name = ''] = readdirSync(folder)
    // With today's times: the archive has those of the release, and Cargo would not build what has changed.
    run('tar', ['-xzmf', name], folder)
    crate = join(folder, name.replace(/\.crate$/, ''))
  }, testTime)
  afterAll(() => rmSync(folder, { recursive: true }))

  it('passes the case files that all hosts share, and its own tests', { timeout: testTime }, () => {
    const args = ['test', '-q', '--release', '--locked', '--all-features', '--tests', '--']
    const printed = run(partPath('cargo'), [...args, '--nocapture'], crate)
    const counts = [...printed.matchAll(/cases: (\d+)$/gm)].map(([, count]) => Number(count))
    const expected = Object.values(countsOf(suites)).reduce((sum, count) => sum + count, 0)
    expect(counts.length).toBe(suites.length)
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(expected)
  })

  it('does what each example of its page says', { timeout: testTime }, () => {
    const args = ['test', '-q', '--release', '--locked', '--all-features', '--doc']
    const printed = run(partPath('cargo'), args, crate)
    const examples = [...readFileSync(join(crate, 'README.md'), 'utf8').matchAll(/^```rust/gm)]
    expect(Number(/(\d+) passed/.exec(printed)?.[1])).toBe(examples.length)
  })

  it('builds without the layer, and without warnings', { timeout: testTime }, () => {
    const args = ['rustc', '-q', '--release', '--locked', '--lib', '--', '-D', 'warnings']
    run(partPath('cargo'), args, crate)
    run(partPath('cargo'), ['fmt', '--check'], crate)
  })
})
