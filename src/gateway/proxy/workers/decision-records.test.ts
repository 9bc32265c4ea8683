import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { openRecordFolder } from './decision-records.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-records-'))
const options = { folder, share: 1, maxBytes: 1, hidden: [] }
const keyFile = join(folder, 'digest.key')
afterEach(() => rmSync(folder, { recursive: true, force: true }))

it('keeps the key of a folder of records, and replaces one that a full disk left empty', () => {
  const key = openRecordFolder(options)
  expect(openRecordFolder(options)).toEqual(key)
  writeFileSync(keyFile, '')
  expect(openRecordFolder(options)).toHaveLength(16)
  expect(readFileSync(keyFile)).toHaveLength(16)
  writeFileSync(keyFile, 'short')
  expect(() => openRecordFolder(options)).toThrow('does not have 16 bytes')
})
