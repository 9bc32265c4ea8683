import { Empty } from './states.tsx'

interface CountTableProps {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly (string | number)[])[]
  /** Shown if there are no rows. */
  readonly none: string
}

const number = new Intl.NumberFormat('en')

/** A card with a table of names and numbers. */
export function CountTable({ title, columns, rows, none }: CountTableProps) {
  const id = title.toLowerCase().replaceAll(' ', '-')
  return (
    <section class="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {rows.length === 0 ? (
        <Empty>{none}</Empty>
      ) : (
        <table>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column}>{column}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <tr key={row.join('\n')}>
                {row.map((cell, at) => (
                  <td key={columns[at]} class={typeof cell === 'number' ? 'number' : ''}>
                    {typeof cell === 'number' ? number.format(cell) : cell || '–'}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}
