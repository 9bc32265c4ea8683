/** Packages of an unpacked image, to compare with its SBOM. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const repository = join(import.meta.dirname, '..', '..')

export const withoutQualifiers = (purl: string): string =>
  decodeURIComponent(purl.split('?')[0] ?? '')

/** Packages of npm, Debian and Node that a file tree contains, and parts of its built files, as package URLs. */
export function packagesIn(root: string): string[] {
  const manifests = globSync('app/**/node_modules/{*,@*/*}/package.json', { cwd: root })
  const npm = manifests.map((file) => {
    const { name, version } = JSON.parse(readFileSync(join(root, file), 'utf8'))
    return `pkg:npm/${name}@${version}`
  })
  const debian = globSync('var/lib/dpkg/status.d/*', { cwd: root }).map((file) => {
    const text = readFileSync(join(root, file), 'utf8')
    const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(text)?.[1]
    return `pkg:deb/debian/${field('Package')}@${field('Version')}`
  })
  const node = `pkg:generic/node@${process.arch === 'arm64' ? nodeVersion('arm64') : nodeVersion('x64')}`
  const notices = readFileSync(join(root, 'app', 'dist', 'THIRD-PARTY-NOTICES.txt'), 'utf8')
  const parts = [...notices.matchAll(/^Package: (.*)$/gm)].map(([, purl = '']) =>
    decodeURIComponent(purl),
  )
  return [...new Set([...npm, ...debian, node, ...parts])].sort()
}

function nodeVersion(arch: string): string {
  const lock = JSON.parse(readFileSync(join(repository, 'package-lock.json'), 'utf8'))
  return lock.packages[`node_modules/node-linux-${arch}`].version
}
