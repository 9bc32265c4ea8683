import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { folder, route } from '../../../test/support/file-source-rig.ts'
import { secretPaths } from '../api/fields.ts'
import { validateObject } from '../api/validate.ts'
import { randomDigestKey } from './digest-key.ts'
import { everyFile } from './file-change.ts'
import { FileSet } from './file-set.ts'

const whole = `${route('a')}---\n${route('b')}`
const changed = `${route('a')}---\n${route('b', 'new.example')}`
const half = route('a')

/** Ways in which content comes to stand at a path. */
const ways: Readonly<Record<string, (path: string, text: string) => void>> = {
  'written in place': (path, text) => {
    rmSync(path, { force: true })
    writeFileSync(path, '')
    writeFileSync(path, text)
  },
  'renamed into place': (path, text) => {
    writeFileSync(`${path}.tmp`, text)
    renameSync(`${path}.tmp`, path)
  },
  'swapped behind a link': (path, text) => {
    const version = join(folder, `..v${versions++}`)
    mkdirSync(version)
    writeFileSync(join(version, 'file'), text)
    symlinkSync(join(version, 'file'), `${path}.tmp`)
    renameSync(`${path}.tmp`, path)
  },
}
let versions = 0

function open(): { files: FileSet; path: string; look: (second?: boolean) => string } {
  const path = join(folder, 'a.yaml')
  const options = { digestKey: randomDigestKey(), validate: validateObject, secretPaths }
  const files = new FileSet({ ...options, paths: [folder], known: () => [] })
  const look = (second = true) => {
    files.refresh([path], second ? new Set([path]) : undefined)
    return [...files.book.keys()].map((key) => key.slice(-1)).join('')
  }
  return { files, path, look }
}

describe.each(Object.entries(ways))('content that is %s', (_, put) => {
  it('is used once two successive scans have found the same bytes', () => {
    const { files, path, look } = open()
    put(path, half)
    files.refreshAll()
    expect([...files.book.keys()]).toEqual([])
    files.refreshAll(everyFile)
    expect([...files.book.keys()]).toEqual(['HTTPRoute/default/a'])
    put(path, whole)
    expect([look(false), look(false), look(), look()]).toEqual(['a', 'a', 'ab', 'ab'])
  })

  it('is not used as long as each scan finds different bytes', () => {
    const { files, path, look } = open()
    put(path, whole)
    files.refreshAll()
    files.refreshAll(everyFile)
    for (const text of [half, '', `${half}---\n`, half, changed]) {
      put(path, text)
      expect(look()).toBe('ab')
    }
    expect(files.refresh([path], everyFile).keys).toContain('HTTPRoute/default/b')
  })

  it('keeps the objects of a file right after its removal', () => {
    const { files, path, look } = open()
    put(path, whole)
    files.refreshAll()
    files.refreshAll(everyFile)
    rmSync(path)
    expect(files.refresh([path]).unsettled).toEqual([path])
    put(path, half)
    expect(look()).toBe('ab')
    put(path, whole)
    expect([look(), look()]).toEqual(['ab', 'ab'])
    rmSync(path)
    expect([look(), look()]).toEqual(['ab', ''])
  })
})
