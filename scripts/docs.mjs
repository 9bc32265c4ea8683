// `npm run docs -- [--version vVERSION] [--output FOLDER]`: builds the documentation site in dist/site. It
// needs no server besides one for static files, and loads nothing from elsewhere. With --version, the pages
// are built into the folder of that version, and those of other versions stay. SITE_BASE sets the path under
// which the whole site is served, such as /sluice/.
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { isVersion, placePages } from './site/versions.mjs'

const root = join(import.meta.dirname, '..')
const { version, output } = readOptions()
const site = join(root, 'site')
const docs = join(root, 'docs')
const pages = join(site, 'pages')
const repository = 'https://github.com/sluice-dev/sluice'

function readOptions() {
  const options = {
    version: { type: 'string' },
    output: { type: 'string', default: join(root, 'dist', 'site') },
  }
  try {
    const { values } = parseArgs({ options })
    if (values.version === undefined || isVersion(values.version)) return values
    throw new Error(`not a version such as v0.1.0: ${values.version}`)
  } catch (error) {
    console.error(`docs: ${error.message}`)
    process.exit(2)
  }
}

function run(command, args, env = process.env) {
  const { status } = spawnSync(command, args, { cwd: site, stdio: 'inherit', env })
  if (status !== 0) throw new Error(`${command} ${args.at(-1)} failed`)
}

/** A link out of docs/ leads to the repository. */
function linkTarget(file, target) {
  if (/^([a-z]+:|#)/.test(target)) return target
  const [path, anchor] = target.split('#')
  const linked = resolve(dirname(file), decodeURI(path))
  const isFolder = existsSync(linked) && statSync(linked).isDirectory()
  if (linked.startsWith(`${docs}/`) && !isFolder && /\.(md|png|svg)$/.test(linked)) return target
  const kind = isFolder ? 'tree' : 'blob'
  const suffix = anchor === undefined ? '' : `#${anchor}`
  return `${repository}/${kind}/${version ?? 'main'}/${relative(root, linked)}${suffix}`
}

function copyPage(from, to) {
  const text = readFileSync(from, 'utf8')
    .replace(/^<!--[\s\S]*?-->\n*/, '')
    .replace(/\]\(([^)\s]+)\)/g, (_, target) => `](${linkTarget(from, target)})`)
  writeFileSync(to, text)
}

if (!existsSync(join(site, 'node_modules', 'vitepress'))) {
  run('npm', ['ci', '--no-audit', '--no-fund'])
}
rmSync(pages, { recursive: true, force: true })
cpSync(docs, pages, {
  recursive: true,
  filter: (from, to) => {
    if (statSync(from).isDirectory()) return true
    if (from.endsWith('.md')) copyPage(from, to)
    return !from.endsWith('.md') && !from.includes(`${docs}/schema/`)
  },
})
// VitePress empties its output folder, which may have the pages of other versions.
const outDir = mkdtempSync(join(tmpdir(), 'sluice-site-'))
try {
  const siteRoot = process.env.SITE_BASE ?? '/'
  run(process.execPath, [join(site, 'node_modules', 'vitepress', 'bin', 'vitepress.js'), 'build'], {
    ...process.env,
    SITE_BUILD: JSON.stringify({ siteRoot, version, outDir }),
  })
  placePages(outDir, resolve(output), version)
} finally {
  rmSync(outDir, { recursive: true, force: true })
}
