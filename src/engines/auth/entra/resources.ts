/** Resources of Azure for which Microsoft Entra issues tokens. */

/** Azure's models. */
export const modelResource = 'https://cognitiveservices.azure.com'
