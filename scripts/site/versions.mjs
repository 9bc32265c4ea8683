// The folder of the documentation site: the pages of the development version at its top unless there are
// only versions, a folder for each version, and versions.json, which the version menu of all pages reads.
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const pattern = /^v(\d+)\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?$/

/** @param {string} name */
export const isVersion = (name) => pattern.test(name)

const partsOf = (name) => {
  const [, major, minor, patch, prerelease] = pattern.exec(name)
  // A release is newer than its prereleases.
  return [major, minor, patch, prerelease === undefined ? 1 : 0].map(Number)
}

/** Orders versions, the newest first. */
function byAge(a, b) {
  const right = partsOf(b)
  const difference = partsOf(a)
    .map((part, index) => right[index] - part)
    .find((part) => part !== 0)
  return difference ?? b.localeCompare(a, 'en', { numeric: true })
}

const isOfVersions = (name) => isVersion(name) || name === 'versions.json'

/**
 * Puts built pages into the folder of the site, in place of the pages of the same version.
 *
 * @param {string} built
 * @param {string} folder
 * @param {string | undefined} version undefined for the development version
 */
export function placePages(built, folder, version) {
  mkdirSync(folder, { recursive: true })
  // Other files at the top, such as .git or CNAME of a published site, are kept with the versions.
  if (version !== undefined) {
    rmSync(join(folder, version), { recursive: true, force: true })
    cpSync(built, join(folder, version), { recursive: true })
  } else {
    for (const name of readdirSync(folder)) {
      const isKept = isOfVersions(name) || name === 'CNAME' || name.startsWith('.')
      if (!isKept) rmSync(join(folder, name), { recursive: true })
    }
    cpSync(built, folder, { recursive: true })
  }
  const versions = readdirSync(folder).filter(isVersion).sort(byAge)
  // Only the development version has a page 404.html at the top.
  const hasDevelopment = existsSync(join(folder, '404.html'))
  const entries = versions.map((name) => ({ name, path: `${name}/` }))
  if (hasDevelopment) entries.push({ name: 'Development', path: '' })
  else if (versions.length > 0) writeFileSync(join(folder, 'index.html'), redirectTo(versions[0]))
  writeFileSync(join(folder, 'versions.json'), `${JSON.stringify(entries)}\n`)
}

const redirectTo = (version) =>
  `<!doctype html><meta charset="utf-8"><title>Sluice</title><meta http-equiv="refresh" content="0; url=${version}/"><a href="${version}/">Documentation of ${version}</a>\n`
