/** What a build takes from others is named by its content, not by a name that can move. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const repository = join(import.meta.dirname, '..', '..')
const read = (file: string) => readFileSync(join(repository, file), 'utf8')

interface LockedPackage {
  readonly resolved?: string
  readonly integrity?: string
  readonly link?: true
}

describe('package-lock.json', () => {
  it('lists the address and the digest of each package for all platforms', () => {
    const { packages } = JSON.parse(read('package-lock.json')) as {
      packages: Record<string, LockedPackage>
    }
    const taken = Object.entries(packages).filter(
      ([path, { link }]) => path.includes('node_modules/') && link !== true,
    )
    expect(taken.length).toBeGreaterThan(100)
    const unverified = taken.filter(([path, { resolved = '', integrity = '' }]) => {
      const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
      const isAddress = resolved.startsWith(`https://registry.npmjs.org/${name}/-/`)
      return !isAddress || !/^sha512-[\w+/]{86}==$/.test(integrity)
    })
    expect(unverified).toEqual([])
  })
})

describe('the workflows of GitHub', () => {
  it.each(globSync('.github/workflows/*.yml', { cwd: repository }))(
    'use actions by commit, and name the version, in %s',
    (file) => {
      const uses = [...read(file).matchAll(/^.*\buses:\s*(.*)$/gm)].map(([, action]) => action)
      expect(uses.length).toBeGreaterThan(0)
      const moving = uses.filter(
        (action) => !/^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+/.test(`${action}`),
      )
      expect(moving).toEqual([])
    },
  )
})
