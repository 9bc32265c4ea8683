// Archives that depend on nothing but their content: sorted names, one time, owner 0.
import { spawnSync } from 'node:child_process'
import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import zlib, { gunzipSync } from 'node:zlib'
import { extract, pack } from 'tar-stream'

/**
 * A file, folder or link of an archive.
 * @typedef {{ name: string, type: 'file' | 'directory' | 'symlink', mode: number, linkname?: string, body?: Buffer }} Entry
 */

/**
 * Writes an archive. Missing parent folders are added; of two entries with one name the later one counts.
 * @param {Iterable<Entry>} entries
 * @returns {Promise<Buffer>}
 */
export async function tarOf(entries) {
  const byName = new Map()
  for (const entry of entries) {
    for (const folder of parentsOf(entry.name)) {
      if (!byName.has(folder)) byName.set(folder, { name: folder, type: 'directory', mode: 0o755 })
    }
    byName.set(entry.name, entry)
  }
  const archive = pack()
  const bytes = bytesOf(archive)
  for (const name of [...byName.keys()].sort()) {
    const { body, ...header } = byName.get(name)
    const shared = { ...header, mtime: new Date(0), uid: 0, gid: 0 }
    await new Promise((resolve, reject) => {
      archive.entry(shared, body ?? '', (error) => (error ? reject(error) : resolve()))
    })
  }
  archive.finalize()
  return bytes
}

async function bytesOf(stream) {
  const chunks = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

function parentsOf(name) {
  const parts = name.split('/').slice(0, -1)
  return parts.map((_, i) => parts.slice(0, i + 1).join('/'))
}

const gzipLater = promisify(zlib.gzip)

/** Compresses without a time or a name in the header, and beside other work. */
export const gzip = (bytes) => gzipLater(bytes, { level: 6 })

/**
 * The files of a folder of this machine under another name.
 * @returns {Entry[]}
 */
export function entriesOf(folder, name) {
  return readdirSync(folder).flatMap((child) => {
    const path = join(folder, child)
    const target = name === '' ? child : `${name}/${child}`
    const stat = lstatSync(path)
    if (stat.isDirectory()) return entriesOf(path, target)
    if (stat.isSymbolicLink()) {
      return [{ name: target, type: 'symlink', mode: 0o777, linkname: readlinkSync(path) }]
    }
    const mode = stat.mode & 0o100 ? 0o755 : 0o644
    return [{ name: target, type: 'file', mode, body: readFileSync(path) }]
  })
}

/**
 * Reads an archive, compressed by gzip or not.
 * @param {Buffer} bytes
 * @returns {Promise<Entry[]>}
 */
export async function readTar(bytes) {
  const archive = extract()
  archive.end(bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes)
  const entries = []
  for await (const entry of archive) {
    const { type, mode = 0o644, linkname } = entry.header
    const name = entry.header.name.replace(/^\.?\//, '').replace(/\/$/, '')
    const body = await bytesOf(entry)
    if (name === '' || name === '.') continue
    entries.push({ name, type, mode: mode & 0o777, linkname: linkname ?? undefined, body })
  }
  return entries
}

/**
 * Reads the files of a Debian package with dpkg-deb.
 * @param {string} path
 * @returns {Promise<{ control: string, entries: Entry[] }>}
 */
export async function readDebianPackage(path) {
  const run = (option) => {
    const { stdout, stderr, status, error } = spawnSync('dpkg-deb', [option, path], {
      maxBuffer: 1 << 30,
    })
    if (error !== undefined) throw new Error(`dpkg-deb is needed: ${error.message}`)
    if (status !== 0) throw new Error(`dpkg-deb ${option}: ${stderr}`)
    return stdout
  }
  return { control: run('--field').toString(), entries: await readTar(run('--fsys-tarfile')) }
}
