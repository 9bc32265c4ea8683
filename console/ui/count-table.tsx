import { Scroll } from './scroll.tsx'
import { Empty } from './states.tsx'

interface CountTableProps {
  readonly title: string
  readonly columns: readonly string[]
  /** Number of columns with names, which are the first ones. The others are aligned like numbers. */
  readonly names: number
  readonly rows: readonly (readonly (string | number)[])[]
  /** Shown if there are no rows. */
  readonly none: string
}

const number = new Intl.NumberFormat('en')

/** A card with a table of names and numbers. */
export function CountTable({ title, columns, names, rows, none }: CountTableProps) {
  const classOf = (at: number) => (at < names ? '' : 'number')
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
                <tr key={row.join('\n')}>
                  {row.map((cell, at) => (
                    <td key={columns[at]} class={classOf(at)}>
                      {typeof cell === 'number' ? number.format(cell) : cell || '–'}
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
