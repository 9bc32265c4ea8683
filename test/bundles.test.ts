import { spawnSync } from 'node:child_process'
import {
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
// @ts-expect-error: a script without types
import { bundledPackages } from '../scripts/bundled-packages.mjs'

const dist = join(import.meta.dirname, '..', 'dist')

/** Packages and files that an entry of dist/ loads when it starts; dynamic imports do not count. */
function loadedBy(entry: string): { packages: string[]; sources: string[] } {
  const packages = new Set<string>()
  const sources = new Set<string>()
  const visited = new Set<string>()
  const visit = (file: string) => {
    if (visited.has(file)) return
    visited.add(file)
    const text = readFileSync(join(dist, file), 'utf8')
    const map = JSON.parse(readFileSync(join(dist, `${file}.map`), 'utf8')) as { sources: string[] }
    for (const source of map.sources) sources.add(source.replace(/^(\.\.\/)+/, ''))
    const imports = /(?:^|[;}])(?:import|export)\s*(?:[\w$*{},\s]+\bfrom)?\s*["']([^"']+)["']/gm
    for (const [, from] of text.matchAll(imports)) {
      if (from === undefined || from.startsWith('node:')) continue
      if (from.startsWith('./')) visit(from.slice(2))
      else packages.add(from.match(/^(@[^/]+\/)?[^/]+/)?.[0] ?? from)
    }
  }
  visit(entry)
  return { packages: [...packages].sort(), sources: [...sources].sort() }
}

describe('the bundle of a proxy worker', () => {
  const { packages, sources } = loadedBy('proxy-worker.js')

  it('loads and contains only the expected packages', () => {
    const contained = sources.flatMap((source) => {
      const name = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source)?.[1]
      return name === undefined ? [] : [name]
    })
    expect(packages).toEqual(['@assemblyscript/loader', 'sonic-boom'])
    expect([...new Set(contained)]).toEqual(['@bufbuild/protobuf'])
  })

  it('is ASCII, so that V8 keeps its source text at one byte a character', () => {
    expect(readFileSync(join(dist, 'proxy-worker.js'), 'latin1')).not.toMatch(/[\u0080-\u00ff]/)
  })

  it('contains no code of the control plane', () => {
    const stages =
      /^src\/(control\/(?!wire\/)|past\/replay|tools|gateway\/backends\/(.*\/)?definitions?)\b/
    expect(sources.length).toBeGreaterThan(50)
    expect(sources.filter((source) => stages.test(source))).toEqual([])
  })
})

describe('the bundles of the command line and the controller', () => {
  const [controller = ''] = globSync('controller-*.js', { cwd: dist })

  it.each(['main.js', controller])('contain no request-path code (%s)', (entry) => {
    const { sources } = loadedBy(entry)
    const ofProxies =
      /^src\/(?:gateway\/(?:policies|backends)\/.*\/(?:apply|provider)\.ts$|engines\/http\/)/
    expect(sources.filter((source) => ofProxies.test(source))).toEqual([])
  })
})

describe('the published bundles for tools', () => {
  it.each([
    ['core.js', []],
    ['events.js', []],
  ])('depend on no package (%s)', (entry, expected) => {
    expect(loadedBy(entry).packages).toEqual(expected)
  })

  it('have types for programs that check the declarations of what they import', () => {
    const root = join(dist, '..')
    const app = mkdtempSync(join(tmpdir(), 'sluice-types-'))
    try {
      mkdirSync(join(app, 'node_modules'))
      symlinkSync(root, join(app, 'node_modules', 'sluice'))
      for (const name of ['@types', 'undici-types']) {
        symlinkSync(join(root, 'node_modules', name), join(app, 'node_modules', name))
      }
      const entries = ['core', 'events', 'replay', 'policy']
      const imports = entries.map((name) => `export * as ${name} from 'sluice/${name}'\n`)
      writeFileSync(join(app, 'package.json'), '{ "type": "module" }')
      writeFileSync(join(app, 'consumer.ts'), imports.join(''))
      const strict = ['--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', 'false']
      const hosts = ['--target', 'es2023', '--module', 'nodenext', '--lib', 'es2023,dom']
      const args = [...strict, ...hosts, '--types', 'node', '--preserveSymlinks', '--noEmit']
      const tsc = join(root, 'node_modules', '.bin', 'tsc')
      const { stdout } = spawnSync(tsc, [...args, 'consumer.ts'], { cwd: app, encoding: 'utf8' })
      expect(stdout).toBe('')
    } finally {
      rmSync(app, { recursive: true })
    }
  }, 60_000)
})

describe('a package in a bundle', () => {
  it('is never imported on demand by its name, because a bundle would keep only its default export', () => {
    const root = join(import.meta.dirname, '..')
    const found = globSync('{src,events}/**/*.ts', { cwd: root }).flatMap((file) => {
      const text = readFileSync(join(root, file), 'utf8')
      const names = [...text.matchAll(/await import\('([^'.][^']*)'\)/g)].map(([, name]) => name)
      return names
        .filter((name) =>
          bundledPackages.some((one: string) => name === one || name?.startsWith(`${one}/`)),
        )
        .map((name) => `${file}: ${name}`)
    })
    expect(found).toEqual([])
  })
})
