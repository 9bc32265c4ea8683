/** Compares two texts line by line. */

export interface DiffLine {
  readonly mark: ' ' | '-' | '+'
  readonly text: string
}

/** Lines around a change that are shown. */
const contextLines = 3
/** Maximum product of the numbers of lines that are compared with each other. */
const maxPairs = 4_000_000

/** The lines that differ, with those around them. Between two changes that are far apart, lines are left out. */
export function lineDiff(before: string, after: string): DiffLine[] {
  const lines = allLines(linesOf(before), linesOf(after))
  const isNear = new Uint8Array(lines.length)
  lines.forEach(({ mark }, at) => {
    if (mark !== ' ') isNear.fill(1, Math.max(0, at - contextLines), at + contextLines + 1)
  })
  return lines.filter((_, at) => isNear[at] === 1)
}

const linesOf = (text: string) => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))

function allLines(old: readonly string[], fresh: readonly string[]): DiffLine[] {
  let start = 0
  while (start < old.length && old[start] === fresh[start]) start++
  let end = 0
  const most = Math.min(old.length, fresh.length) - start
  while (end < most && old.at(-1 - end) === fresh.at(-1 - end)) end++
  const same = (text: string): DiffLine => ({ mark: ' ', text })
  return [
    ...old.slice(0, start).map(same),
    ...changedLines(old.slice(start, old.length - end), fresh.slice(start, fresh.length - end)),
    ...old.slice(old.length - end).map(same),
  ]
}

/** Keeps a longest common subsequence of the lines, unless there are too many to compare. */
function changedLines(old: readonly string[], fresh: readonly string[]): DiffLine[] {
  const removed = (text: string): DiffLine => ({ mark: '-', text })
  const added = (text: string): DiffLine => ({ mark: '+', text })
  if (old.length * fresh.length > maxPairs) return [...old.map(removed), ...fresh.map(added)]
  const common = commonLengths(old, fresh)
  const lines: DiffLine[] = []
  let [a, b] = [0, 0]
  while (a < old.length && b < fresh.length) {
    const [before = '', after = ''] = [old[a], fresh[b]]
    if (before === after) {
      lines.push({ mark: ' ', text: before })
      a++
      b++
    } else if (common(a + 1, b) >= common(a, b + 1)) {
      lines.push(removed(before))
      a++
    } else {
      lines.push(added(after))
      b++
    }
  }
  return [...lines, ...old.slice(a).map(removed), ...fresh.slice(b).map(added)]
}

/** Returns the length of the longest common subsequence of what follows a line in each text. */
function commonLengths(old: readonly string[], fresh: readonly string[]) {
  const width = fresh.length + 1
  const lengths = new Uint32Array((old.length + 1) * width)
  const at = (a: number, b: number) => lengths[a * width + b] ?? 0
  for (let a = old.length - 1; a >= 0; a--) {
    for (let b = fresh.length - 1; b >= 0; b--) {
      lengths[a * width + b] =
        old[a] === fresh[b] ? at(a + 1, b + 1) + 1 : Math.max(at(a + 1, b), at(a, b + 1))
    }
  }
  return at
}
