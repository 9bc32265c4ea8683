/** Guides have no code block that guides.test.ts would skip. */
import { describe, expect, it } from 'vitest'
import { pagesBelow, readPage } from '../support/markdown.ts'

const guides = pagesBelow('docs/guides').filter((path) => !path.endsWith('index.md'))

/** Blocks that other tests run: those of the upgrade need a cluster, those of `what-if` a key. */
const runElsewhere: Readonly<Record<string, readonly string[]>> = {
  'docs/guides/upgrade.md': ['bash'],
  'docs/guides/what-if.md': ['bash'],
}

describe('the code blocks of', () => {
  it.each(guides)('%s are run, compared or found in its example', (path) => {
    const known = ['sh', 'text', 'yaml', ...(runElsewhere[path] ?? [])]
    const { blocks } = readPage(path)
    expect(blocks.filter(({ language }) => !known.includes(language))).toEqual([])
    const texts = blocks.flatMap((block, index) =>
      block.language === 'text' && blocks[index - 1]?.language !== 'sh' ? [block.text] : [],
    )
    expect(texts).toEqual([])
  })
})
