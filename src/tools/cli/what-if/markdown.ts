/** Formats the answer of `sluice what-if` as Markdown, for a comment on a pull request or merge request. */
import { caveatOf, differenceText, type Section, sectionsOf, type WhatIfReport } from './report.ts'

/** The first line of a comment, which is not shown. A pipeline finds the comment that it updates by this line. */
const marker = '<!-- sluice what-if -->'
/** Maximum number of characters. GitHub takes comments of at most 65,536. */
const maxCharacters = 60_000
const maxBlockLines = 200
const maxLineCharacters = 500
/** Characters around the lines of a section. */
const frameCharacters = 200

/** A code block whose fence is longer than every run of backticks in it, so that its text stays text. */
function codeBlock(lines: readonly string[], language: string): string[] {
  const runs = lines.flatMap((line) => line.match(/`+/g) ?? [])
  const fence = '`'.repeat(Math.max(3, ...runs.map(({ length }) => length + 1)))
  return [`${fence}${language}`, ...lines, fence]
}

const cut = (line: string): string =>
  line.length <= maxLineCharacters ? line : `${line.slice(0, maxLineCharacters)}…`

/** Returns the first lines with at most `characters` characters in all, followed by `…` if there are more. */
function firstLines(lines: readonly string[], characters: number): string[] {
  const found: string[] = []
  let left = characters
  for (const line of lines.map(cut)) {
    left -= line.length + 1
    if (left < 0 || found.length === maxBlockLines) return [...found, '…']
    found.push(line)
  }
  return found
}

/** Writes the sections. Each gets an equal share of the characters that the earlier ones leave. */
function sectionMarkdown(sections: readonly Section[], characters: number): string[] {
  let left = characters
  return sections.flatMap(({ title, count, lines }, at) => {
    const share = Math.floor(left / (sections.length - at)) - frameCharacters
    const block = codeBlock(firstLines(lines, share), 'diff')
    left -= block.join('\n').length + frameCharacters
    const summary = `<details><summary>${title} (${count})</summary>`
    return ['', summary, '', ...block, '', '</details>']
  })
}

export function reportMarkdown(report: WhatIfReport): string[] {
  const sections = sectionsOf(report)
  const { requests, hasRequests } = report
  const { costs } = requests
  const rows = [
    ...sections.map(({ title, count }) => `| ${title} | ${count} |`),
    ...(hasRequests ? [`| Unchanged requests | ${requests.unchanged} of ${requests.total} |`] : []),
    ...(costs === undefined || costs.changed === 0
      ? []
      : [`| Cost of requests to models | ${differenceText(costs.before, costs.difference)} |`]),
  ]
  const head = [
    marker,
    '## sluice what-if',
    '',
    sections.length === 0 ? 'This change has no effect.' : 'This change has these effects:',
    '',
    ...caveatOf(report).flatMap((line) => [line, '']),
    ...(rows.length === 0 ? [] : ['| | |', '|---|---:|', ...rows]),
  ]
  return [...head, ...sectionMarkdown(sections, maxCharacters - head.join('\n').length)]
}
