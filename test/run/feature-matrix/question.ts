/** What every request of the matrix says, and the schema of its tools. */
export const question = 'Hello, what is it like?'

const cityOf = { type: 'object', properties: { city: { type: 'string' } } } as const
export const cityTool = { ...cityOf, required: ['city'], additionalProperties: false }
