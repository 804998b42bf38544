"""A paragraph in each of many languages, with the encodings that people have written it in."""

from __future__ import annotations

from typing import Final

PARAGRAPHS: Final[dict[str, tuple[str, str]]] = {
    "Russian": (
        "koi8-r cp1251 iso8859-5 cp866 mac-cyrillic",
        "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и "
        "должны поступать в отношении друг друга в духе братства. Каждый человек должен обладать всеми правами и "
        "всеми свободами, провозглашенными настоящей Декларацией, без какого бы то ни было различия, как то в "
        "отношении расы, цвета кожи, пола, языка, религии, политических или иных убеждений. Установка программы: "
        "скачайте архив, распакуйте его и запустите файл настройки.",
    ),
    "Ukrainian": (
        "koi8-u cp1251 iso8859-5",
        "Всі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і совістю і "
        "повинні діяти у відношенні один до одного в дусі братерства. Кожна людина повинна мати всі права і всі "
        "свободи, проголошені цією Декларацією, незалежно від раси, кольору шкіри, статі, мови, релігії. "
        "Встановлення програми: завантажте архів, розпакуйте його і запустіть файл налаштувань.",
    ),
    "Bulgarian": (
        "cp1251 iso8859-5",
        "Всички хора се раждат свободни и равни по достойнство и права. Те са надарени с разум и съвест и следва да "
        "се отнасят помежду си в дух на братство. Всеки човек има право на всички права и свободи, провъзгласени в "
        "тази Декларация, без никакви различия, основани на раса, цвят на кожата, пол, език, религия, политически "
        "или други възгледи. Инсталиране на програмата: изтеглете архива и стартирайте файла.",
    ),
    "Greek": (
        "cp1253 iso8859-7",
        "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Είναι προικισμένοι με "
        "λογική και συνείδηση, και οφείλουν να συμπεριφέρονται μεταξύ τους με πνεύμα αδελφοσύνης. Κάθε άνθρωπος "
        "δικαιούται να επικαλείται όλα τα δικαιώματα και όλες τις ελευθερίες που προκηρύσσει η παρούσα Διακήρυξη. "
        "Εγκατάσταση του προγράμματος: κατεβάστε το αρχείο και εκτελέστε το.",
    ),
    "Polish": (
        "cp1250 iso8859-2",
        "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem i "
        "sumieniem i powinni postępować wobec innych w duchu braterstwa. Każdy człowiek posiada wszystkie prawa i "
        "wolności zawarte w niniejszej Deklaracji bez względu na różnice rasy, koloru, płci, języka, wyznania. "
        "Instalacja programu: proszę ściągnąć archiwum, rozpakować je i uruchomić plik.",
    ),
    "Czech": (
        "cp1250 iso8859-2",
        "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím a mají "
        "spolu jednat v duchu bratrství. Každý má všechna práva a všechny svobody, stanovené touto deklarací, bez "
        "jakéhokoli rozlišování, zejména podle rasy, barvy, pohlaví, jazyka, náboženství, politického smýšlení. "
        "Instalace programu: stáhněte archiv, rozbalte jej a spusťte soubor.",
    ),
    "Hungarian": (
        "cp1250 iso8859-2",
        "Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, ésszel és "
        "lelkiismerettel bírván, egymással szemben testvéri szellemben kell hogy viseltessenek. Mindenki, bármely "
        "megkülönböztetésre, nevezetesen fajra, színre, nemre, nyelvre, vallásra való tekintet nélkül hivatkozhat a "
        "jelen Nyilatkozatban kinyilvánított összes jogokra. A program telepítése: töltse le a fájlt és futtassa.",
    ),
    "Romanian": (
        "cp1250 iso8859-2",
        "Toate ființele umane se nasc libere și egale în demnitate și în drepturi. Ele înzestrate sînt cu rațiune și "
        "conștiință și trebuie să se comporte unele față de altele în spiritul fraternității. Fiecare om se poate "
        "prevala de toate drepturile și libertățile proclamate în prezenta Declarație fără nici un fel de "
        "deosebire.".replace("ț", "ţ").replace("ș", "ş"),
    ),
    "German": (
        "latin-1 cp1252 iso8859-15 mac-roman",
        "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt "
        "und sollen einander im Geiste der Brüderlichkeit begegnen. Jeder hat Anspruch auf die in dieser Erklärung "
        "verkündeten Rechte und Freiheiten ohne irgendeinen Unterschied, etwa nach Rasse, Hautfarbe, Geschlecht, "
        "Sprache, Religion, politischer oder sonstiger Überzeugung. Größe der Straße prüfen, Übung löschen.",
    ),
    "French": (
        "latin-1 cp1252 iso8859-15 mac-roman",
        "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de "
        "conscience et doivent agir les uns envers les autres dans un esprit de fraternité. Chacun peut se prévaloir "
        "de tous les droits et de toutes les libertés proclamés dans la présente Déclaration, sans distinction "
        "aucune, notamment de race, de couleur, de sexe, de langue. Le café est fermé à côté de la forêt.",
    ),
    "Spanish": (
        "latin-1 iso8859-15 mac-roman",
        "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón y "
        "conciencia, deben comportarse fraternalmente los unos con los otros. Toda persona tiene los derechos y "
        "libertades proclamados en esta Declaración, sin distinción alguna de raza, color, sexo, idioma, religión, "
        "opinión política. ¿Cómo se instala? Descargue el archivo, configúrelo e inícielo mañana.",
    ),
    "Swedish": (
        "latin-1 cp1252 mac-roman",
        "Alla människor är födda fria och lika i värde och rättigheter. De är utrustade med förnuft och samvete och "
        "bör handla gentemot varandra i en anda av broderskap. Var och en är berättigad till alla de rättigheter och "
        "friheter som uttalas i denna förklaring utan åtskillnad av något slag, såsom på grund av ras, hudfärg, kön.",
    ),
    "Turkish": (
        "cp1254 iso8859-9",
        "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve birbirlerine "
        "karşı kardeşlik zihniyeti ile hareket etmelidirler. Herkes, ırk, renk, cinsiyet, dil, din, siyasi veya diğer "
        "herhangi bir akide farkı gözetilmeksizin işbu Beyannamede ilan olunan tekmil haklardan istifade edebilir.",
    ),
    "Lithuanian": (
        "cp1257 iso8859-13",
        "Visi žmonės gimsta laisvi ir lygūs savo orumu ir teisėmis. Jiems suteiktas protas ir sąžinė ir jie turi "
        "elgtis vienas kito atžvilgiu kaip broliai. Kiekvienas žmogus gali naudotis visomis teisėmis ir laisvėmis, "
        "paskelbtomis šioje Deklaracijoje, be jokių skirtumų dėl rasės, odos spalvos, lyties, kalbos, religijos.",
    ),
    "Latvian": (
        "cp1257 iso8859-13",
        "Visi cilvēki piedzimst brīvi un vienlīdzīgi savā pašcieņā un tiesībās. Viņi ir apveltīti ar saprātu un "
        "sirdsapziņu, un viņiem jāizturas citam pret citu brālības garā. Ikvienam cilvēkam pienākas visas tiesības "
        "un visas brīvības, kas pasludinātas šajā deklarācijā, bez jebkādas atšķirības.",
    ),
    "Hebrew": (
        "cp1255 iso8859-8",
        "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם לנהוג איש "
        "ברעהו ברוח של אחווה. כל אדם זכאי לזכויות ולחרויות שנקבעו בהכרזה זו ללא הפליה כלשהי מטעמי גזע, צבע, מין, "
        "לשון, דת, דעה פוליטית. התקנת התוכנה: הורידו את הקובץ והפעילו אותו.",
    ),
    "Arabic": (
        "cp1256 iso8859-6",
        "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح "
        "الإخاء. لكل إنسان حق التمتع بكافة الحقوق والحريات الواردة في هذا الإعلان، دون أي تمييز، كالتمييز بسبب "
        "العنصر أو اللون أو الجنس أو اللغة أو الدين. تثبيت البرنامج: نزل الملف ثم شغله.",
    ),
    "Thai": (
        "tis-620 cp874",
        "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ต่างมีเหตุผลและมโนธรรม "
        "และควรปฏิบัติต่อกันด้วยเจตนารมณ์แห่งภราดรภาพ ทุกคนย่อมมีสิทธิและอิสรภาพทั้งปวงตามที่กำหนดไว้ในปฏิญญานี้ "
        "การติดตั้งโปรแกรม: ดาวน์โหลดไฟล์แล้วเรียกใช้",
    ),
    "Vietnamese": (
        "cp1258",
        "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền. Mọi con người đều được tạo hoá "
        "ban cho lý trí và lương tâm và cần phải đối xử với nhau trong tình bằng hữu.",
    ),
    "Japanese": (
        "shift_jis cp932 euc-jp iso2022_jp",
        "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授けられて"
        "おり、互いに同胞の精神をもって行動しなければならない。このプログラムをインストールするには、ファイルをダウンロードして"
        "実行してください。設定ファイルは変更しないでください。すべて人は、人種、皮膚の色、性、言語、宗教によるいかなる差別も"
        "受けることなく、この宣言に掲げるすべての権利と自由とを享有することができる。",
    ),
    "Simplified Chinese": (
        "gbk gb18030 gb2312",
        "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。人人有资格享有本宣言所载的一切"
        "权利和自由，不分种族、肤色、性别、语言、宗教、政治或其他见解。安装程序：请下载文件并运行它。这是一个配置文件，请不要修改。"
        "谢谢大家的支持。并且不得因一人所属的国家或领土的政治的、行政的或者国际的地位之不同而有所区别。",
    ),
    "Traditional Chinese": (
        "big5 cp950",
        "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神相對待。人人有資格享有本宣言所載的一切"
        "權利和自由，不分種族、膚色、性別、語言、宗教、政治或其他見解。安裝程式：請下載檔案並執行它。這是一個設定檔，請不要修改。"
        "並且不得因一人所屬的國家或領土的政治的、行政的或者國際的地位之不同而有所區別。",
    ),
    "Korean": (
        "euc-kr cp949",
        "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 "
        "부여받았으며 서로 형제애의 정신으로 행동하여야 한다. 모든 사람은 인종, 피부색, 성, 언어, 종교, "
        "정치적 또는 기타의 견해에 따른 어떠한 종류의 차별이 없이 이 선언에 규정된 모든 권리와 자유를 "
        "향유할 자격이 있다. "
        "프로그램 설치: 파일을 내려받아 실행하십시오.",
    ),
}
"""By language: names of encodings, and the paragraph."""
