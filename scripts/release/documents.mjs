// The documents of a release: completions, the manual page, and the notes from the changelog.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './app-tree.mjs'

function sluice(...args) {
  const main = join(root, 'dist', 'main.js')
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...args], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`sluice ${args.join(' ')}: ${stderr}`)
  return stdout
}

/** Completion scripts and the manual page, under the names that packages install them by. */
export function shellDocuments(version) {
  return [
    { name: 'completions/sluice.bash', bytes: sluice('completion', 'bash') },
    { name: 'completions/_sluice', bytes: sluice('completion', 'zsh') },
    { name: 'completions/sluice.fish', bytes: sluice('completion', 'fish') },
    { name: 'man/sluice.1', bytes: sluice('manual').replace(/^\.TH .*$/m, titleOf(version)) },
  ]
}

const titleOf = (version) =>
  `.TH SLUICE 1 "" "sluice ${version.replaceAll('-', '\\-')}" "User Commands"`

/** The changelog's part about a version; before a version has a part of its own, what is unreleased. */
export function releaseNotes(version) {
  const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
  const parts = changelog.split(/^## /m).slice(1)
  const titled = (title) => parts.find((part) => part.split(/[\s\n]/, 1)[0] === title)
  const part = titled(version) ?? titled('Unreleased')
  if (part === undefined) throw new Error(`CHANGELOG.md has no part "${version}" or "Unreleased"`)
  return `# Sluice ${version}\n${part.slice(part.indexOf('\n'))}`
}
