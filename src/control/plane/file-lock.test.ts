import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { LockedError, takeFileLock } from './file-lock.ts'

let folder: string
let path: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-lock-'))
  path = join(folder, 'state')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

it('a lock has one holder until it is released', () => {
  const unlock = takeFileLock(path)
  expect(() => takeFileLock(path)).toThrow(LockedError)
  unlock()
  takeFileLock(path)()
})

it('a lock file with other content is used as an empty one', () => {
  writeFileSync(`${path}.lock`, Buffer.alloc(5_000, 0x5a))
  const unlock = takeFileLock(path)
  expect(() => takeFileLock(path)).toThrow(LockedError)
  unlock()
})

it('a lock file that cannot be created is not reported as being in use', () => {
  const missing = join(folder, 'absent', 'state')
  expect(() => takeFileLock(missing)).toThrow(/unable to open database file/)
  expect(() => takeFileLock(missing)).not.toThrow(LockedError)
})
