import type { DiffLine } from '../models/line-diff.ts'
import { Scroll } from './scroll.tsx'

/** The lines that differ between two texts; nothing if there are none. */
export function DiffLines({ lines }: { lines: readonly DiffLine[] }) {
  if (lines.length === 0) return null
  return (
    <Scroll label="Lines">
      <pre>
        {lines.map(({ mark, text }, at) => {
          const line = `${mark} ${text}`
          if (mark === '-') return <del key={at}>{line}</del>
          return mark === '+' ? <ins key={at}>{line}</ins> : <span key={at}>{line}</span>
        })}
      </pre>
    </Scroll>
  )
}
