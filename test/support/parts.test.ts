import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { findPart } from './parts.ts'

const vitest = join(import.meta.dirname, '..', '..', 'node_modules', 'vitest', 'vitest.mjs')

describe('looking up an external program or folder', () => {
  let folder: string
  /** A machine that has nothing but an empty cache. */
  let bare: Record<string, string>
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-parts-'))
    bare = { PATH: '', SLUICE_ASSETS: join(folder, 'cache') }
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  const program = (place: string, mode = 0o755) => {
    mkdirSync(join(folder, place), { recursive: true })
    const path = join(folder, place, 'etcd')
    writeFileSync(path, '')
    chmodSync(path, mode)
    return path
  }

  it('reports why a program or a folder is missing', () => {
    expect(findPart('etcd', bare)).toEqual({
      found: false,
      reason: 'no etcd in KUBEBUILDER_ASSETS or on PATH',
    })
    expect(findPart('gateway-api-crds', bare)).toEqual({
      found: false,
      reason: 'gateway-api-crds: SLUICE_GATEWAY_API_CRDS is not set',
    })
    const gone = join(folder, 'gone')
    expect(findPart('gateway-api-crds', { ...bare, SLUICE_GATEWAY_API_CRDS: gone })).toEqual({
      found: false,
      reason: `gateway-api-crds: SLUICE_GATEWAY_API_CRDS names ${gone}, which does not exist`,
    })
  })

  it('prefers KUBEBUILDER_ASSETS to PATH, and skips files that are not executable', () => {
    const assets = program('assets')
    const onPath = program('path')
    program('data', 0o644)
    const PATH = `${join(folder, 'data')}:${join(folder, 'path')}`
    const KUBEBUILDER_ASSETS = join(folder, 'assets')
    expect(findPart('etcd', { ...bare, PATH, KUBEBUILDER_ASSETS })).toEqual({
      found: true,
      path: assets,
    })
    expect(findPart('etcd', { ...bare, PATH })).toEqual({ found: true, path: onPath })
  })

  it('finds the parts of the last setup even if its variables are not set', () => {
    const path = program('assets')
    mkdirSync(join(folder, 'cache'))
    writeFileSync(
      join(folder, 'cache', 'env'),
      `export KUBEBUILDER_ASSETS='${join(folder, 'assets')}'\n`,
    )
    expect(findPart('etcd', bare)).toEqual({ found: true, path })
  })
})

describe('a test run without the external programs', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-parts-'))
    writeFileSync(
      join(folder, 'absent.check.ts'),
      `import { describeWithParts } from '${join(import.meta.dirname, 'parts.ts')}'
       describeWithParts(['etcd'], 'a store', () => {
         it('keeps what it is given', () => {})
         describe('after a restart', () => { it('has it still', () => {}) })
       })`,
    )
    writeFileSync(
      join(folder, 'config.mjs'),
      `export default { test: { globals: true, include: ['*.check.ts'],
       globalSetup: ['${join(import.meta.dirname, 'absent-parts.ts')}'] } }`,
    )
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  const run = (required: Record<string, string>) =>
    spawnSync(
      process.execPath,
      [vitest, 'run', '--root', folder, '--config', 'config.mjs', '--reporter=verbose'],
      {
        encoding: 'utf8',
        env: { PATH: '', SLUICE_ASSETS: folder, NO_COLOR: '1', ...required },
      },
    )

  it('passes, lists the skipped tests, and ends with the reason', () => {
    const { status, stdout } = run({})
    expect(status).toBe(0)
    expect(stdout).toContain('a store > keeps what it is given')
    expect(stdout).toContain('a store > after a restart > has it still')
    expect(stdout.trimEnd().split('\n').slice(-2)).toEqual([
      '2 tests skipped: no etcd in KUBEBUILDER_ASSETS or on PATH',
      'test/assets/setup makes what is absent',
    ])
  })

  it('fails with the reason if the programs are required', () => {
    const { status, stderr } = run({ SLUICE_REQUIRE_PARTS: '1' })
    expect(status).toBe(1)
    expect(stderr).toContain('no etcd in KUBEBUILDER_ASSETS or on PATH')
  })
})
