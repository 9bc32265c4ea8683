/** Agent cards as items of lists, beside the tools of MCP servers. */

/** The targets of the lists: the public card and the extended card, of which each is the only item of its list. */
export const cardTargets = ['agent', 'agent-extended'] as const
export type CardTarget = (typeof cardTargets)[number]

/** The list in which a card is an item. */
export const cardList = 'agents'
export const cardItem = 'card'
