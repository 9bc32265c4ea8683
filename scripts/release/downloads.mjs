// Downloads files and keeps them in the cache of the test assets by their digest. A file whose content
// does not have the expected digest is never used.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'

const cache = join(
  process.env.SLUICE_ASSETS ||
    join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'sluice-assets'),
  'downloads',
)

/**
 * Returns the content of the first URL that serves it.
 *
 * @param {readonly string[]} urls
 * @param {string} integrity `ALGORITHM-DIGEST`, the digest in base64 as in package-lock.json
 * @returns {Promise<Buffer>}
 */
export async function download(urls, integrity) {
  const file = join(cache, integrity.replaceAll('/', '_'))
  if (existsSync(file)) {
    const bytes = readFileSync(file)
    if (hasDigest(bytes, integrity)) return bytes
  }
  const problems = []
  for (const url of urls) {
    const bytes = await fetchBytes(url).catch((error) => {
      problems.push(`${url}: ${error.cause?.message ?? error.message}`)
    })
    if (bytes === undefined) continue
    if (hasDigest(bytes, integrity)) {
      mkdirSync(cache, { recursive: true })
      writeFileSync(`${file}.${process.pid}`, bytes)
      renameSync(`${file}.${process.pid}`, file)
      return bytes
    }
    problems.push(`${url}: the content does not have the digest ${integrity}`)
  }
  throw new Error(`download failed: ${problems.join('; ')}`)
}

/** @returns {Promise<Buffer>} */
export async function fetchBytes(url) {
  const response = await fetch(url, { signal: AbortSignal.timeout(300_000) })
  if (!response.ok) throw new Error(`status ${response.status}`)
  return Buffer.from(await response.arrayBuffer())
}

function hasDigest(bytes, integrity) {
  const algorithm = integrity.slice(0, integrity.indexOf('-'))
  const digest = createHash(algorithm).update(bytes).digest('base64')
  return integrity === `${algorithm}-${digest}`
}
