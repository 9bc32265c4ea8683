/** The C library, from the archive that users download, compiled in a folder of its own. */
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { abi, cases, countsOf, expectAllRun, hostSuites, wasm } from '../hosts/suites.ts'
import { describeWithParts, partPath } from '../support/parts.ts'

const root = join(import.meta.dirname, '..', '..')
const source = join(root, 'packages', 'c')
const testTime = 240_000
const parts = ['cc', 'python3', 'python-wasmtime', 'python-tools'] as const

describeWithParts(parts, 'the C library [design.embed]', () => {
  let folder: string
  let library: string

  function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): string {
    const { status, stdout, stderr } = spawnSync(command, args, {
      encoding: 'utf8',
      cwd: folder,
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', ...env },
    })
    expect(status, stdout + stderr).toBe(0)
    return stdout
  }

  const cc = (...args: readonly string[]) =>
    run(partPath('cc'), ['-std=c11', '-Wall', '-Wextra', '-Werror', `-I${library}`, ...args])
  const objects = ['sluice-core.o', 'sluice-texts.o']

  /** Runs a program for Python with the C library in place of the engine. */
  function python(args: readonly string[], ...modules: readonly string[]): string {
    const path = [join(source, 'tests'), ...modules]
    return run(partPath('python3'), args, {
      SLUICE_LIBRARY: join(folder, 'libsluice.so'),
      SLUICE_ABI: abi,
      CASES: cases,
      PYTHONPATH: path.join(delimiter),
    })
  }

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-c-'))
    run(process.execPath, [join(root, 'scripts', 'packages', 'c.mjs'), '.'])
    const [archive = ''] = readdirSync(folder)
    run('tar', ['-xzf', archive])
    library = archive.replace('.tar.gz', '')
    for (const object of objects) {
      const file = join(library, object.replace('.o', '.c'))
      // Generated code has variables that it does not use.
      cc('-O1', '-fPIC', '-Wno-unused', '-c', file, '-o', object)
    }
    cc(
      '-O1',
      '-fPIC',
      '-shared',
      '-o',
      'libsluice.so',
      join(library, 'sluice.c'),
      ...objects,
      '-lm',
    )
  }, testTime)
  afterAll(() => rmSync(folder, { recursive: true }))

  it('passes the case files that all hosts share', { timeout: testTime }, () => {
    const program = join(root, 'examples', 'embedding', 'python', 'main.py')
    const result = JSON.parse(python([program, wasm, abi, cases], partPath('python-wasmtime')))
    run(process.execPath, [join(root, 'scripts', 'packages', 'python.mjs'), 'wheel'])
    const [wheel = ''] = readdirSync(join(folder, 'wheel'))
    run(partPath('python3'), ['-m', 'zipfile', '-e', join('wheel', wheel), 'package'])
    const tests = join(root, 'packages', 'python', 'tests', 'test_cases.py')
    const printed = python([tests], join(folder, 'package'), partPath('python-tools'))
    const ran = JSON.parse(/^[.]*(\{.*\})$/m.exec(printed)?.[1] ?? '{}')
    expect(ran).toEqual(countsOf(hostSuites['`sluice-core` in Python']))
    const texts = { 'texts/cases': ran['texts/cases'] }
    expectAllRun('`sluice.h` in C', { ...result, run: { ...result.run, ...texts } })
  })

  it('masks, counts and limits without an error of memory', { timeout: testTime }, () => {
    const files = [join(source, 'tests', 'use.c'), join(library, 'sluice.c')]
    copyFileSync(join(folder, library, 'o200k_base.tokens'), join(folder, 'o200k_base.tokens'))
    const sanitized = ['-O1', '-g', '-fsanitize=address,undefined', '-fno-sanitize-recover=all']
    cc(...sanitized, ...files, ...objects, '-lm', '-o', 'use')
    run(join(folder, 'use'), [])
  })

  it.each([[], ...(process.arch === 'x64' ? [['-mssse3'], ['-U__SSE2__']] : [])])(
    'has the vector instructions of WebAssembly when compiled with %s',
    { timeout: testTime },
    (...flags) => {
      cc('-O2', ...flags, join(source, 'tests', 'vectors.c'), '-o', 'vectors')
      run(join(folder, 'vectors'), [])
    },
  )

  it('does what each example of its page says', { timeout: testTime }, () => {
    const page = readFileSync(join(source, 'README.md'), 'utf8').replaceAll(
      'sluice-c-0.1.0',
      library,
    )
    const examples = [...page.matchAll(/^```c\n([\s\S]*?)^```\n\n```text\n([\s\S]*?)^```/gm)]
    expect(examples.length).toBeGreaterThan(3)
    const headers = ['sluice.h', 'stdio.h', 'stdlib.h', 'string.h']
    const includes = headers.map((header) => `#include <${header}>\n`).join('')
    for (const [, code, printed] of examples) {
      writeFileSync(join(folder, 'main.c'), `${includes}int main(void) {\n${code}return 0;\n}\n`)
      cc('main.c', join(library, 'sluice.c'), ...objects, '-lm', '-o', 'main')
      expect(run(join(folder, 'main'), [])).toBe(printed)
    }
  })
})
