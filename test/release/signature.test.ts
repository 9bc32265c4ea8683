/** The signature of a release, verified with the commands of docs/operations/releases.md. */
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signChecksums } from '../../scripts/release/sign.mjs'
import { readPage } from '../support/markdown.ts'

const folder = mkdtempSync(join(tmpdir(), 'sluice-signature-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const makeKey = (name: string): string => {
  const key = join(folder, name)
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'test', '-f', key])
  return key
}

function sign(key: string): Buffer {
  rmSync(join(folder, 'SHA256SUMS.sig'), { force: true })
  signChecksums(folder, key)
  return readFileSync(join(folder, 'SHA256SUMS.sig'))
}

/** Runs the commands of the page on this folder, for the signer with this key. */
function verify(key: string) {
  const { blocks } = readPage('docs/operations/releases.md')
  const block = blocks.find(({ text }) => text.includes('ssh-keygen -Y verify'))
  const script = block?.text.replace('~/.ssh/release.pub', `${key}.pub`) ?? 'exit 3'
  return spawnSync('bash', ['-e', '-c', script], { cwd: folder, encoding: 'utf8' })
}

describe.skipIf(spawnSync('ssh-keygen', ['-?']).error)('the signature of a release', () => {
  const sums = `${createHash('sha256').update('content').digest('hex')}  file\n`
  let key: string
  beforeAll(() => {
    key = makeKey('release')
    writeFileSync(join(folder, 'file'), 'content')
    writeFileSync(join(folder, 'SHA256SUMS'), sums)
  })

  it('is valid for the key of the signer, and the same each time', () => {
    const signature = sign(key)
    expect(sign(key)).toEqual(signature)
    expect(verify(key)).toMatchObject({ status: 0, stdout: expect.stringContaining('file: OK') })
  })

  it('is not valid for another key', () => {
    sign(makeKey('other'))
    expect(verify(key).status).not.toBe(0)
  })

  it.each([
    ['a file', 'file', 'other content'],
    ['the checksums', 'SHA256SUMS', `${sums}${'0'.repeat(64)}  more\n`],
  ])('is not valid if %s changed', (_, name, text) => {
    sign(key)
    const before = readFileSync(join(folder, name))
    writeFileSync(join(folder, name), text)
    expect(verify(key).status).not.toBe(0)
    writeFileSync(join(folder, name), before)
  })

  it('fails with a key that does not exist', () => {
    expect(() => signChecksums(folder, join(folder, 'none'))).toThrow('SHA256SUMS was not signed')
  })
})
