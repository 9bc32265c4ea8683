import { ExportLines } from '../../../src/control/log/export-lines.ts'
import { regexProblem } from '../../../src/control/plane/api-binding.ts'
import { createFold } from '../../../src/past/replay/index.ts'

/** Digests after each event of an export: `position desired status`. */
export function digestsOf(name: string, text: string): string[] {
  const lines = new ExportLines(name)
  const fold = createFold({ checkRegex: regexProblem })
  return text.split('\n').flatMap((line) => {
    const recorded = lines.read(line)
    if (recorded === undefined) return []
    fold.apply(recorded)
    const { desired, status } = fold.digests()
    return [`${recorded.position} ${desired} ${status}`]
  })
}
