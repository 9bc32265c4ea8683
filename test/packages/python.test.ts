/** The Python package, from the wheel that users install, in an environment of its own. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { root } from '../hosts/files-server.ts'
import { countsOf, hostSuites } from '../hosts/suites.ts'
import { describeWithParts, partPath } from '../support/parts.ts'

const source = join(root, 'packages', 'python')
const testTime = 120_000

describeWithParts(['python3', 'python-tools'], 'the Python package [design.embed]', () => {
  let folder: string
  /** Python of an environment that has the wheel and what it depends on. */
  let python: string

  function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): string {
    const options = {
      encoding: 'utf8',
      cwd: folder,
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', ...env },
    } as const
    const { status, stdout, stderr } = spawnSync(command, args, options)
    expect(status, stdout + stderr).toBe(0)
    return stdout + stderr
  }

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-python-'))
    const tools = partPath('python-tools')
    run(process.execPath, [join(root, 'scripts', 'packages', 'python.mjs'), '.'])
    const [wheel = ''] = readdirSync(folder)
    // Not every Python can install pip into an environment, so the one outside does what pip would do there.
    run(partPath('python3'), ['-m', 'venv', '--without-pip', 'environment'])
    python = join(folder, 'environment', 'bin', 'python')
    const [version = ''] = readdirSync(join(folder, 'environment', 'lib'))
    const packages = join(folder, 'environment', 'lib', version, 'site-packages')
    const install = ['-m', 'pip', 'install', '-q', '--no-index', '--no-deps', '--target', packages]
    run(partPath('python3'), [...install, join(folder, wheel)])
    // The dependencies were downloaded before.
    writeFileSync(join(packages, 'dependencies.pth'), `${tools}\n`)
  }, testTime)
  afterAll(() => rmSync(folder, { recursive: true }))

  it('passes the case files that all hosts share', { timeout: testTime }, () => {
    const printed = run(python, [join(source, 'tests', 'test_cases.py')], {
      CASES: join(root, 'test', 'core'),
    })
    const ran = /^\{.*\}$/m.exec(printed)?.[0] ?? ''
    expect(JSON.parse(ran)).toEqual(countsOf(hostSuites['`sluice-core` in Python']))
  })

  it('guards clients of models, logs and limits', { timeout: testTime }, () => {
    run(python, [join(source, 'tests', 'test_use.py')])
  })

  it('has complete type hints', { timeout: testTime }, () => {
    run(python, [
      '-m',
      'mypy',
      '--config-file',
      join(source, 'pyproject.toml'),
      '-p',
      'sluice_core',
    ])
  })

  it('does what each example of its page says', { timeout: testTime }, () => {
    const page = readFileSync(join(source, 'README.md'), 'utf8')
    const examples = [...page.matchAll(/^```python\n([\s\S]*?)^```/gm)].map(([, code]) => code)
    expect(examples.length).toBeGreaterThan(5)
    for (const example of examples) run(python, ['-c', example ?? ''])
  })
})
