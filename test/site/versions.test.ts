import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { isVersion, placePages } from '../../scripts/site/versions.mjs'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-site-test-'))
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

const site = () => join(folder, 'site')
const read = (path: string) => readFileSync(join(site(), path), 'utf8')
const listed = () => JSON.parse(read('versions.json')).map(({ name }: { name: string }) => name)

/** Builds pages with these names, and puts them into the site. */
function place(version: string | undefined, ...pages: readonly string[]): void {
  const built = mkdtempSync(join(folder, 'built-'))
  mkdirSync(join(built, 'guides'))
  for (const page of ['index.html', '404.html', ...pages]) {
    writeFileSync(join(built, page), `${page} of ${version}`)
  }
  placePages(built, site(), version)
}

describe('the folder of the documentation site', () => {
  it('keeps the pages of other versions when one is built, and lists the newest first', () => {
    for (const version of ['v0.9.0', 'v0.10.0', 'v0.10.0-rc.1', 'v0.2.1']) place(version)
    expect(listed()).toEqual(['v0.10.0', 'v0.10.0-rc.1', 'v0.9.0', 'v0.2.1'])
    expect(read('v0.9.0/index.html')).toBe('index.html of v0.9.0')
  })

  it('leads from its top to the newest version, as long as it has no development version', () => {
    place('v0.2.0')
    place('v0.1.0')
    expect(read('index.html')).toContain('url=v0.2.0/')
    place(undefined)
    expect(read('index.html')).toBe('index.html of undefined')
    place('v0.3.0')
    expect(read('index.html')).toBe('index.html of undefined')
    expect(listed()).toEqual(['v0.3.0', 'v0.2.0', 'v0.1.0', 'Development'])
  })

  it('removes pages that a version no longer has', () => {
    place('v0.1.0', 'guides/old.html')
    place(undefined, 'guides/old.html')
    place('v0.1.0')
    place(undefined)
    expect(readdirSync(join(site(), 'v0.1.0', 'guides'))).toEqual([])
    expect(readdirSync(join(site(), 'guides'))).toEqual([])
  })

  it('keeps what publishing needs', () => {
    place('v0.1.0')
    writeFileSync(join(site(), 'CNAME'), 'docs.example.com')
    place(undefined)
    expect(read('CNAME')).toBe('docs.example.com')
  })

  it.each(['0.1.0', 'v1', '../v0.1.0', 'v0.1.0/..'])(
    'takes no version that is written %s',
    (name) => {
      expect(isVersion(name)).toBe(false)
    },
  )
})
