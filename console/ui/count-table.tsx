import { Scroll } from './scroll.tsx'
import { Empty } from './states.tsx'

/** A name, a number, or a name that leads somewhere. */
export type Cell = string | number | { readonly text: string; readonly href: string }

interface CountTableProps {
  readonly title: string
  readonly columns: readonly string[]
  /** Number of columns with names, which are the first ones. The others are aligned like numbers. */
  readonly names: number
  readonly rows: readonly (readonly Cell[])[]
  /** Shown if there are no rows. */
  readonly none: string
}

const number = new Intl.NumberFormat('en')

/** Number of characters up to which a name is not broken. */
const shortText = 28

const textOf = (cell: Cell): string => (typeof cell === 'object' ? cell.text : `${cell}`)

function shown(cell: Cell) {
  if (typeof cell === 'object') return <a href={cell.href}>{cell.text}</a>
  return typeof cell === 'number' ? number.format(cell) : cell || '–'
}

/** A card with a table of names and numbers. */
export function CountTable({ title, columns, names, rows, none }: CountTableProps) {
  const classOf = (at: number) => (at < names ? '' : 'number')
  // Short names stay whole, and the table scrolls; long texts may break anywhere.
  const cellClass = (cell: Cell, at: number) => {
    if (at >= names) return classOf(at)
    return textOf(cell).length <= shortText ? 'nowrap' : 'long'
  }
  const id = title.toLowerCase().replaceAll(' ', '-')
  return (
    <section class="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {rows.length === 0 ? (
        <Empty>{none}</Empty>
      ) : (
        <Scroll label={`Columns of ${title}`}>
          <table>
            <thead>
              <tr>
                {columns.map((column, at) => (
                  <th key={column} class={classOf(at)}>
                    {column}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.map(textOf).join('\n')}>
                  {row.map((cell, at) => (
                    <td key={columns[at]} class={cellClass(cell, at)}>
                      {shown(cell)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </section>
  )
}
