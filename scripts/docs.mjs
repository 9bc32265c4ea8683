// `npm run docs`: builds the documentation site in dist/site. It needs no server besides one for
// static files, and loads nothing from elsewhere. SITE_BASE sets the path under which it is served,
// such as /0.1/ for the documentation of one version beside others.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

const root = join(import.meta.dirname, '..')
const site = join(root, 'site')
const docs = join(root, 'docs')
const pages = join(site, 'pages')
const repository = 'https://github.com/sluice-dev/sluice'

function run(command, args) {
  const { status } = spawnSync(command, args, { cwd: site, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
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
  return `${repository}/${kind}/main/${relative(root, linked)}${suffix}`
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
run(process.execPath, [join(site, 'node_modules', 'vitepress', 'bin', 'vitepress.js'), 'build'])
