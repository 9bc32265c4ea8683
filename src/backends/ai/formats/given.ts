/** The fields that have a value; the others stay absent, as optional fields are meant. */
export function given<Fields extends object>(
  fields: Readonly<Record<keyof Fields, unknown>> & {
    readonly [Name in keyof Required<Fields>]: Fields[Name] | undefined
  },
): Partial<Fields> {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries) as Partial<Fields>
}
