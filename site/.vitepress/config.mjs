// The documentation site: docs/ as copied to site/pages by scripts/docs.mjs.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { defineConfig } from 'vitepress'

const pages = join(import.meta.dirname, '..', 'pages')
/** Where the whole site is served, and the version whose pages are built; set by scripts/docs.mjs. */
const { siteRoot, version, outDir } = JSON.parse(process.env.SITE_BUILD)

const read = (page) => readFileSync(join(pages, `${page}.md`), 'utf8')
const titleOf = (page) => /^# (.*)$/m.exec(read(page))[1].replaceAll('`', '')
const folderOf = (page) => page.replace(/\/index$/, '')

/** The pages of a folder in order of their names, without its index. */
const itemsOf = (folder) =>
  readdirSync(join(pages, folder))
    .filter((file) => file.endsWith('.md') && file !== 'index.md')
    .map((file) => itemOf(`${folder}/${file.slice(0, -3)}`))

/** A page, with the pages of the folder that has its name. */
function itemOf(page) {
  const item = { text: titleOf(page), link: `/${page}` }
  if (!existsSync(join(pages, folderOf(page)))) return item
  return { ...item, collapsed: true, items: itemsOf(folderOf(page)) }
}

/** The sidebar has the sections of docs/index.md and the pages that they link. */
const sidebar = read('index')
  .split(/^## /m)
  .slice(1)
  .map((section) => ({
    text: section.split('\n', 1)[0],
    collapsed: false,
    items: [...section.matchAll(/\[([^\]]*)\]\(([\w/-]+?)\.md\)/g)].map(([, , page]) =>
      itemOf(page),
    ),
  }))

/** Guides are found before lists of fields and figures, which have most words. Runs in the page, so it uses nothing else. */
function boostDocument(id) {
  if (/\/(start|guides|agents)\//.test(id)) return 2
  return /\/(reference|adr|benchmarks|migrate)\/|\/(status|events|benchmarks|differences)\./.test(
    id,
  )
    ? 0.5
    : 1
}

export default defineConfig({
  title: 'Sluice',
  description: 'A gateway for AI, MCP and HTTP traffic that can explain every decision it made',
  srcDir: 'pages',
  outDir,
  base: version === undefined ? siteRoot : `${siteRoot}${version}/`,
  lang: 'en',
  // The pages are plain Markdown: angle brackets are text.
  markdown: { html: false, theme: { light: 'github-light', dark: 'github-dark' } },
  themeConfig: {
    search: {
      provider: 'local',
      options: { miniSearch: { searchOptions: { boostDocument } } },
    },
    outline: [2, 3],
    nav: [
      { text: 'Guides', link: '/guides/' },
      { text: 'Reference', link: '/reference/gateway-policy' },
      { component: 'VersionMenu' },
    ],
    sidebar,
    siteRoot,
    version: version ?? 'Development',
  },
})
