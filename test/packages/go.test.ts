/** The Go module, from the module proxy that users download it from, with a module cache of its own. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { countsOf, hostSuites } from '../hosts/suites.ts'
import { describeWithParts, partPath } from '../support/parts.ts'
import { encodings } from './models.ts'

const root = join(import.meta.dirname, '..', '..')
const source = join(root, 'packages', 'go')
const testTime = 240_000
const suites = hostSuites['`sluice.dev/sluice` in Go']

describeWithParts(['go', 'wazero'], 'the Go module [design.embed]', () => {
  let folder: string
  let settings: NodeJS.ProcessEnv

  function go(args: readonly string[], env: NodeJS.ProcessEnv = {}): string {
    const options = { encoding: 'utf8', cwd: join(folder, 'user') } as const
    const environment = { ...process.env, ...settings, ...env }
    const { status, stdout, stderr } = spawnSync(partPath('go'), args, {
      ...options,
      env: environment,
    })
    expect(status, stdout + stderr).toBe(0)
    return stdout
  }

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-go-'))
    const user = join(folder, 'user')
    mkdirSync(user)
    writeFileSync(join(user, 'go.mod'), 'module example.com/user\n\ngo 1.25.0\n')
    writeFileSync(join(user, 'main.go'), 'package main\n\nfunc main() {}\n')
    const packed = spawnSync(
      process.execPath,
      [join(root, 'scripts', 'packages', 'go.mjs'), join(folder, 'proxy')],
      { encoding: 'utf8' },
    )
    expect(packed.status, packed.stderr).toBe(0)
    // The dependencies were downloaded before; a module cache has the files of a proxy.
    settings = { GOFLAGS: '-modcacherw' }
    const downloaded = join(go(['env', 'GOMODCACHE']).trim(), 'cache', 'download')
    settings = {
      GOFLAGS: '-modcacherw',
      GOMODCACHE: join(folder, 'modules'),
      GOPROXY: `file://${join(folder, 'proxy')},file://${downloaded}`,
      GOSUMDB: 'off',
      GOTOOLCHAIN: 'local',
      CGO_ENABLED: '0',
    }
    go(['get', '-t', 'sluice.dev/sluice'])
  }, testTime)
  afterAll(() => rmSync(folder, { recursive: true }))

  it('passes the case files that all hosts share', { timeout: testTime }, () => {
    const printed = go(['test', '-v', 'sluice.dev/sluice'], {
      CASES: join(root, 'test', 'core'),
      MODELS: encodings,
    })
    const expected = Object.values(countsOf(suites)).reduce((sum, count) => sum + count, 0)
    expect(Number(/^cases: (\d+)$/m.exec(printed)?.[1])).toBe(expected)
    expect(printed).not.toContain('--- SKIP')
  })

  it('has nothing that vet or gofmt objects to', { timeout: testTime }, () => {
    go(['vet', 'sluice.dev/sluice'])
    const gofmt = join(go(['env', 'GOROOT']).trim(), 'bin', 'gofmt')
    const { status, stdout } = spawnSync(gofmt, ['-l', source], { encoding: 'utf8' })
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' })
  })

  it('adds the vocabularies only to programs that count tokens', { timeout: testTime }, () => {
    const size = (call: string) => {
      const program = `package main\n\nimport "sluice.dev/sluice"\n\nfunc main() { ${call} }\n`
      writeFileSync(join(folder, 'user', 'main.go'), program)
      go(['build', '-o', 'program', '.'])
      return readFileSync(join(folder, 'user', 'program')).length
    }
    const masks = size('sluice.MustMask(sluice.Email)')
    expect(size('sluice.CountTokens("text", "gpt-4o")') - masks).toBeGreaterThan(900_000)
  })

  it('runs each example of its page', () => {
    const page = readFileSync(join(source, 'README.md'), 'utf8')
    const tests = readFileSync(join(source, 'example_test.go'), 'utf8')
    const examples = [...page.matchAll(/^```go\n([\s\S]*?)^```/gm)].map(([, code = '']) => code)
    expect(examples.length).toBeGreaterThan(7)
    for (const example of examples) expect(tests).toContain(example.replace(/^(?=.)/gm, '\t'))
  })
})
