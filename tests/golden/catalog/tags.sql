SELECT tag_name, tag_value FROM `main`.information_schema.table_tags WHERE schema_name = 'games' AND table_name = 'chess';
SELECT column_name, tag_name, tag_value FROM `main`.information_schema.column_tags WHERE schema_name = 'games' AND table_name = 'chess';
ALTER TABLE `main`.`Games`.`chess` SET TAGS ('deprecated' = 'true', 'owner' = 'team a\'s');
ALTER TABLE `main`.`Games`.`chess` ALTER COLUMN `user``name` SET TAGS ('level' = '\u0024{HIGH}', 'pii' = 'true');
ALTER TABLE `main`.`Games`.`chess` ALTER COLUMN `new` SET TAGS ('a' = 'b\\c')
